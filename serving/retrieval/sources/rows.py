"""JSON Lines: one ready-made passage a row, with the fields of :class:`~serving.answer.types.Passage`."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, BinaryIO, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NaiveDatetime, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from serving.answer.types import Passage
from serving.retrieval.documents import Document, Item, Skipped, SkipReason
from serving.retrieval.records import passage_id
from serving.retrieval.sources.decoding import SkipError
from serving.retrieval.sources.found import Found
from serving.retrieval.sources.front_matter import as_date
from serving.retrieval.sources.options import Dates

MAX_ROW_BYTES = 1_000_000
"""A longer row is no passage. It bounds what is held of a file that has no line ends."""

_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

Name = Annotated[str, StringConstraints(max_length=1000)]


class PassageRow(BaseModel):
    """One row. Only ``text`` must be there; what is missing is taken from the file the row stands in.

    ``published_at`` is an ISO 8601 time, in UTC where it names no zone. ``score`` belongs to a query and is not kept.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=100_000)]
    id: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x20\x7f]+$", max_length=200)] | None = None
    title: Name = ""
    url: Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=4000)] | None = None
    source: Name | None = None
    heading_path: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    source_path: Name | None = None
    repo_path: Name | None = None
    commit_sha: Name | None = None
    published_at: AwareDatetime | NaiveDatetime | None = None
    score: float = 0.0


def documents(found: Found, stream: BinaryIO, dates: Dates, dated: datetime | None) -> Iterator[Item]:
    """A document for each row of ``stream``, which may be gzip, and a skip for each row that is none.

    Only the row in hand is held. ``dated`` is the file's time, for rows without their own where ``dates`` says so.
    Raises :class:`SkipError` for what is no text at all, and when the compression breaks off.
    """
    for number, given in enumerate(_lines(stream), start=1):
        where = f"{found.path}:{number}"
        line = _first(given) if number == 1 else given
        if len(line) > MAX_ROW_BYTES:
            yield Skipped(where, SkipReason.TOO_LARGE, f"a row of more than {MAX_ROW_BYTES} bytes")
        elif line.strip():
            yield _item(found, where, line, dates, dated)


def _item(found: Found, where: str, line: bytes, dates: Dates, dated: datetime | None) -> Item:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return Skipped(where, SkipReason.BAD_ENCODING, f"not utf-8: byte 0x{line[error.start]:02x}")
    try:
        row = PassageRow.model_validate_json(line)
    except ValidationError as error:
        return Skipped(where, SkipReason.BAD_ROW, "; ".join(_said(fault) for fault in error.errors()[:5]))
    source, source_path = row.source or found.source, row.source_path or found.source_path
    passage = Passage(
        id=row.id or passage_id(source, source_path, row.heading_path, row.text),
        text=row.text,
        title=row.title,
        url=row.url,
        source=source,
        heading_path=row.heading_path,
        source_path=source_path,
        repo_path=row.repo_path or found.repo_path,
        commit_sha=row.commit_sha or found.commit_sha,
        published_at=_date(row, dates, dated),
    )
    return Document(
        text="",
        title=row.title,
        source=found.source,
        source_path=f"{found.source_path or found.source}#{passage.id}",
        url=row.url,
        ready=(passage,),
        place=f"{found.place}#{passage.id}",
    )


def _date(row: PassageRow, dates: Dates, dated: datetime | None) -> datetime | None:
    if dates is Dates.NONE:
        return None
    return as_date(row.published_at) or (dated if dates is Dates.FILE else None)


def _said(fault: ErrorDetails) -> str:
    where = ".".join(str(part) for part in fault["loc"])[:80]
    if fault["type"] == "extra_forbidden":
        return f"{where}: no such field; a row may have {', '.join(PassageRow.model_fields)}"
    message = fault["msg"].replace("Input should", "should").replace("String should", "should")
    return f"{where}: {message}" if where else f'{message}; a row is one JSON object such as {{"text": "…"}}'


def _first(line: bytes) -> bytes:
    if line.startswith(_UTF16_MARKS):
        raise SkipError(
            SkipReason.BAD_ENCODING, "UTF-16; JSON Lines are UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`"
        )
    if b"\0" in line:
        raise SkipError(SkipReason.BINARY, f"a zero byte at offset {line.index(0)}")
    return line.removeprefix(_UTF8_MARK)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Each line, of a longer one its first ``MAX_ROW_BYTES + 1`` bytes. Gzip is known by its first bytes."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))
    plain = gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == _GZIP else buffered
    try:
        while line := plain.readline(MAX_ROW_BYTES + 1):
            yield line
            while len(line) > MAX_ROW_BYTES and not line.endswith(b"\n"):
                line = plain.readline(MAX_ROW_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SkipError(SkipReason.UNREADABLE, f"broken gzip: {error}") from error
