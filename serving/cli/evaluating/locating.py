"""Which rows a run is of: a kind of suite, a file, a folder, or a set's name under ``ANSWER_EVAL_DATA``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.cli.evaluating.errors import EvaluationError
from serving.evaluation import suites
from serving.evaluation.report import SuiteFacts
from serving.evaluation.rows import AlceRow, Format, QaPassage, QaRow, Reading
from serving.evaluation.sampling import balanced

DATA = "ANSWER_EVAL_DATA"

DEFAULTS = {
    Format.QA: "qa/clapnq.test.jsonl.gz",
    Format.GROUNDING: "grounding/factcheck_gpt.test.jsonl.gz",
    Format.RERANK: "rerank/selqa.test.jsonl.gz",
    Format.ROUTE: "route",
}
"""What a kind alone stands for, under ``ANSWER_EVAL_DATA``. A folder is all of its sets."""

_KINDS = frozenset(kind.value for kind in Format if kind is not Format.LOG)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows to run, in the suite's order, and what the report says of where they are from.

    ``every`` are all good rows. An ``asqa`` file is read into ``qa`` rows: its documents are their passages.
    """

    facts: SuiteFacts
    rows: list[Any]
    every: list[Any]


def choose(suite: str, *, file: Path | None, limit: int | None, seed: int) -> Chosen:
    """Raises :class:`EvaluationError` or :class:`~serving.evaluation.suites.SuiteError` when there is no such suite."""
    kind, place = _place(suite, file)
    paths = sorted(place.glob("*.jsonl.gz")) + sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    if not paths:
        raise EvaluationError(f"{place} holds no .jsonl or .jsonl.gz file")
    every, bad = _read(kind, paths)
    rows = balanced(every, LABELS[kind], limit, seed)
    facts = SuiteFacts(
        name=place.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json"),
        format=kind,
        sha256=_digest(paths),
        rows=len(every),
        chosen=len(rows),
        bad=tuple(map(str, bad)),
    )
    return Chosen(facts, rows, every)


def _place(suite: str, file: Path | None) -> tuple[Format, Path]:
    """The kind of a suite and where it lies."""
    if suite in _KINDS:
        return Format(suite), file or _under_data(DEFAULTS.get(Format(suite)), suite)
    if file is not None:
        raise EvaluationError(f"with --file, name the kind of suite first: {', '.join(sorted(_KINDS))}; not {suite!r}")
    path = Path(suite).expanduser()
    if not path.exists():
        path = _under_data(suite, suite)
    kind = path.name if path.is_dir() else path.parent.name
    if kind not in _KINDS:
        raise EvaluationError(
            f"what kind of suite {suite} is cannot be told from its folder; write `answer eval KIND --file {suite}` "
            f"with one of {', '.join(sorted(_KINDS))}"
        )
    return Format(kind), path


def _under_data(name: str | None, suite: str) -> Path:
    root = os.environ.get(DATA)
    if name is None or not root:
        raise EvaluationError(f"which {suite} suite? Give its path with --file, or set {DATA} to a folder of them")
    endings = ("", ".jsonl.gz", ".jsonl", ".json")
    found = [path for ending in endings if (path := Path(root) / f"{name}{ending}").exists()]
    if not found:
        raise EvaluationError(f"there is no suite {name} under {DATA} ({root}); name one that is there, or a path")
    return found[0]


def _read(kind: Format, paths: Sequence[Path]) -> tuple[list[Any], list[suites.BadRow]]:
    rows: dict[str, Any] = {}
    bad: list[suites.BadRow] = []
    for path in paths:
        suite = _READERS[kind](path)
        bad += suite.bad
        for place, row in enumerate(suite.rows, start=1):
            each = _as_question(row, place) if isinstance(row, AlceRow) else row
            if each.id in rows:
                bad.append(suites.BadRow(path, place, f"the id {each.id!r} stands in another file already"))
            else:
                rows[each.id] = each
    return list(rows.values()), bad


def _as_question(row: AlceRow, place: int) -> QaRow:
    item = row.item()
    return QaRow(
        id=row.sample_id or f"item-{place}",
        question=row.question,
        passages=tuple(QaPassage(text=doc.text, title=doc.title) for doc in item.docs if doc.text),
        answers=(),
        answerable=True,
        qa_pairs=tuple(Reading(question=pair.question, answers=pair.short_answers) for pair in row.qa_pairs or ()),
    )


_READERS: dict[Format, Callable[[Path], suites.Suite[Any]]] = {
    Format.QA: suites.read_qa,
    Format.GROUNDING: suites.read_grounding,
    Format.RERANK: suites.read_rerank,
    Format.ROUTE: suites.read_route,
    Format.ASQA: suites.read_asqa,
}

LABELS: dict[Format, Callable[[Any], Any]] = {
    Format.QA: lambda row: row.answerable,
    Format.GROUNDING: lambda row: row.label,
    Format.RERANK: lambda _: None,
    Format.ROUTE: lambda row: row.route,
    Format.ASQA: lambda row: row.answerable,
}
"""What a limited run is balanced over."""


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
