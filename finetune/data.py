"""What a job is trained on: rows of JSON Lines files or of ``datasets`` sets, checked one by one.

A reference is a file (``qa/squad2.train.jsonl.gz``, relative to the job's data root) or ``datasets:NAME[:SPLIT]``, a
set that the `datasets` library loads and whose columns are the format's fields. A row that is not of the format is
counted and reported with its file and line, never silently dropped. A file that cannot be read, or has no good row,
stops the job before it begins. Held-out files (``.test.`` in their name) are refused, except to judge with
(``held_out``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from finetune.errors import JobError
from serving.evaluation.rows import GroundingRow, QaRow, RerankRow, RouteRow
from serving.evaluation.suites import BadRow, SuiteError, read_rows

R = TypeVar("R", bound=BaseModel)
SET = "datasets:"
HELD_OUT = ".test."


@dataclass(frozen=True, slots=True)
class Input(Generic[R]):
    """The rows of one reference, in order. ``sha256`` is of the file's bytes, or of the rows of a set."""

    reference: str
    sha256: str
    rows: tuple[R, ...]
    bad: tuple[BadRow, ...]

    def describe(self) -> dict[str, object]:
        return {
            "reference": self.reference,
            "sha256": self.sha256,
            "rows": len(self.rows),
            "left_out": len(self.bad),
        }


class CorpusRow(BaseModel):
    """A passage of a corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str
    text: str = Field(min_length=1)
    heading_path: tuple[str, ...] = ()
    url: str | None = None


def qa(references: Sequence[str], root: Path | None, *, held_out: bool = False) -> list[Input[QaRow]]:
    return [_read(reference, root, QaRow, held_out=held_out) for reference in references]


def rerank(references: Sequence[str], root: Path | None, *, held_out: bool = False) -> list[Input[RerankRow]]:
    return [_read(reference, root, RerankRow, held_out=held_out) for reference in references]


def grounding(references: Sequence[str], root: Path | None, *, held_out: bool = False) -> list[Input[GroundingRow]]:
    return [_read(reference, root, GroundingRow, held_out=held_out) for reference in references]


def routes(references: Sequence[str], root: Path | None, *, held_out: bool = False) -> list[Input[RouteRow]]:
    return [_read(reference, root, RouteRow, held_out=held_out) for reference in references]


def corpus(references: Sequence[str], root: Path | None) -> list[Input[CorpusRow]]:
    return [_read(reference, root, CorpusRow) for reference in references]


def _read(reference: str, root: Path | None, kind: type[R], *, held_out: bool = False) -> Input[R]:
    if HELD_OUT in reference and not held_out:
        raise JobError(f"{reference} is held out: a model trained on it could not be judged. Name a train file")
    if reference.startswith(SET):
        return _from_set(reference, kind)
    path = (root or Path()) / reference
    try:
        suite = read_rows(path, kind)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    except SuiteError as error:
        raise JobError(f"{error.message}. Expected: JSON Lines with {_fields(kind)}") from error
    except OSError as error:
        raise JobError(f"{path} cannot be read: {error.strerror}") from error
    return Input(reference, sha256, suite.rows, suite.bad)


def _from_set(reference: str, kind: type[R]) -> Input[R]:
    import datasets  # noqa: PLC0415 (heavy, and most jobs read files)

    name, _, split = reference.removeprefix(SET).partition(":")
    try:
        found = datasets.load_dataset(name, split=split or "train")
    except Exception as error:  # the library raises what its many sources raise
        raise JobError(f"{reference} cannot be loaded: {error}") from error
    digest = hashlib.sha256()
    rows: list[R] = []
    bad: list[BadRow] = []
    for number, row in enumerate(found, start=1):
        digest.update(json.dumps(row, sort_keys=True, default=str).encode())
        try:
            rows.append(kind.model_validate(row))
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            bad.append(BadRow(Path(reference), number, faults))
    if not rows:
        raise JobError(f"{reference} has no good row. Expected: {_fields(kind)}")
    return Input(reference, digest.hexdigest(), tuple(rows), tuple(bad))


def _fields(kind: type[BaseModel]) -> str:
    return "the fields " + ", ".join(
        name if field.is_required() else f"{name}?" for name, field in kind.model_fields.items()
    )
