"""Suite files read into typed rows. A bad row is reported with its file and line, and costs only itself.

JSON Lines, gzip-compressed or not, in the data kit's formats; or, for ``asqa``, ALCE's own JSON file: a list of items,
or a result file, whose items stand under ``data``.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from serving.answer.errors import AnswerError
from serving.evaluation.rows import AlceRow, AnswerabilityRow, GroundingRow, QaRow, RerankRow, RouteRow

R = TypeVar("R", bound=BaseModel)

_SPACE = re.compile(r"[ \t\r\n]*")


class SuiteError(AnswerError):
    """A suite cannot be read at all: no such file, not text, or no good row in it."""

    code = "suite_invalid"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was left out. ``line`` counts from 1 and is where the row begins."""

    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Suite(Generic[R]):
    """The good rows of a file, in order, and the bad ones."""

    path: Path
    rows: tuple[R, ...]
    bad: tuple[BadRow, ...]


def read_qa(path: Path) -> Suite[QaRow]:
    return read_rows(path, QaRow)


def read_answerability(path: Path) -> Suite[AnswerabilityRow]:
    """Questions with known answerability: ``{"question": …, "answerable": …}`` a line, or a ``qa`` suite."""
    return read_rows(path, AnswerabilityRow)


def read_grounding(path: Path) -> Suite[GroundingRow]:
    return read_rows(path, GroundingRow)


def read_rerank(path: Path) -> Suite[RerankRow]:
    return read_rows(path, RerankRow)


def read_route(path: Path) -> Suite[RouteRow]:
    return read_rows(path, RouteRow)


def read_asqa(path: Path) -> Suite[AlceRow]:
    """ALCE's JSON. A file that is not JSON is an error as a whole, with the line at which it stops being so."""
    try:
        text = _raw(path).decode("utf-8-sig")
        rows, bad = _validated(path, AlceRow, _items(text, path))
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path} is not UTF-8 text: {error}") from error
    except json.JSONDecodeError as error:
        raise SuiteError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise SuiteError(f"{path}: nested too deep to be a suite") from error
    return _suite(path, rows, bad)


def read_rows(path: Path, kind: type[R]) -> Suite[R]:
    """The rows of a JSON Lines file. Raises :class:`SuiteError` when it cannot be read or has no good row."""
    broken: list[BadRow] = []
    rows, bad = _validated(path, kind, _lines(path, broken))
    return _suite(path, rows, [*bad, *broken])


def _validated(path: Path, kind: type[R], found: Iterator[tuple[int, str | bytes]]) -> tuple[list[R], list[BadRow]]:
    """Rows of JSON texts, each with the line that it begins on."""
    rows: list[R] = []
    bad: list[BadRow] = []
    first_line: dict[str, int] = {}
    for number, text in found:
        try:
            row = kind.model_validate_json(text, strict=True)
        except ValidationError as error:
            bad.append(BadRow(path, number, _explained(error)))
            continue
        name = getattr(row, "id", "") or getattr(row, "sample_id", "")
        if name in first_line:
            bad.append(BadRow(path, number, f"the id {name!r} stands on line {first_line[name]} already"))
            continue
        if name:
            first_line[name] = number
        rows.append(row)
    return rows, bad


def _explained(error: ValidationError) -> str:
    faults = [(".".join(map(str, fault["loc"])) or "row", fault["msg"]) for fault in error.errors(include_url=False)]
    shown = "; ".join(f"{where}: {what}" for where, what in faults[:3])
    return f"{shown}; and {len(faults) - 3} more" if len(faults) > 3 else shown


def _suite(path: Path, rows: list[R], bad: list[BadRow]) -> Suite[R]:
    if not rows:
        first = f"; the first bad row: {bad[0]}" if bad else ""
        raise SuiteError(f"{path} holds no good row{first}")
    return Suite(path, tuple(rows), tuple(bad))


def _lines(path: Path, broken: list[BadRow]) -> Iterator[tuple[int, bytes]]:
    """The file's lines that are not empty. Where a compressed file breaks off is noted; what came before counts."""
    number = 0
    try:
        with gzip.open(path) if _is_gzip(path) else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                bare = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if bare.strip():
                    yield number, bare
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        broken.append(BadRow(path, number + 1, f"the compressed file breaks off here: {error}"))
    except OSError as error:
        raise _unreadable(path, error) from error


def _raw(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SuiteError(f"{path}: the compressed file breaks off: {error}") from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _unreadable(path: Path, error: OSError) -> SuiteError:
    return SuiteError(f"cannot read {path}: {error.strerror or error}; give the path of a suite file")


def _items(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """The items of ALCE's JSON, as they are written, with the line each begins on."""
    start = _list_start(text)
    if start is None:
        raise SuiteError(f"{path} is JSON, but neither a list of items nor an object with such a list under 'data'")
    decoder = json.JSONDecoder()
    at, line, counted = _past_space(text, start + 1), 1, 0
    while text[at] != "]":
        line, counted = line + text.count("\n", counted, at), at
        end = decoder.raw_decode(text, at)[1]
        yield line, text[at:end]
        at = _past_space(text, end)
        if text[at] == ",":
            at = _past_space(text, at + 1)


def _list_start(text: str) -> int | None:
    """Where the list of items begins, once the whole text is known to be JSON. None when there is none."""
    whole = cast("Any", json.loads(text))
    at = _past_space(text, 0)
    if isinstance(whole, list):
        return at
    if not isinstance(whole, dict) or not isinstance(whole.get("data"), list):
        return None
    decoder = json.JSONDecoder()
    found = None
    at = _past_space(text, at + 1)
    while text[at] != "}":
        key, end = decoder.raw_decode(text, at)
        value_at = _past_space(text, _past_space(text, end) + 1)
        if key == "data":
            found = value_at  # the last one counts, as it does to json.loads
        at = _past_space(text, decoder.raw_decode(text, value_at)[1])
        if text[at] == ",":
            at = _past_space(text, at + 1)
    return found


def _past_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
