"""What the citation adapter does on held-out questions, beside the model that it was trained on."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from finetune import data
from finetune.citation.asking import EMBEDDER, JUDGES, POLICY, Models, Outcomes, ask_all
from finetune.citation.settings import CitationSettings
from finetune.errors import JobError
from finetune.home import home
from finetune.judging import Judgement, Measure
from finetune.training import say
from models.catalog import Catalog
from models.fingerprint import fingerprint
from serving.answer import prompt
from serving.evaluation.estimates import Indices
from serving.evaluation.rows import QaPassage, QaRow, RerankRow

VALID, TIMES, RIGHT_CITATION = 0.98, 2.0, 0.90
_SEED = 7


def judge(settings: CitationSettings, weights: Path | None, base: Path) -> Judgement:
    """Asks the model with the adapter in ``weights``, and without it, the held-out questions of ``settings``."""
    rows = held_out(settings)
    before = _asked(settings, rows, base)
    if weights is None:
        return judgement(rows, before, before)
    merged = Catalog(home()).merged(base, weights, progress=say)
    return judgement(rows, _asked(settings, rows, merged), before)


def held_out(settings: CitationSettings) -> list[QaRow]:
    """The held-out questions: at most ``most_questions`` of each file, the same ones for the same settings."""
    given, root = settings.held_out, settings.data_root
    files = [list(one.rows) for one in data.qa(given.qa, root, held_out=True)]
    files += [[_as_qa(row) for row in one.rows] for one in data.rerank(given.two_hops, root, held_out=True)]
    if not files:
        raise JobError("held_out: name at least one file, e.g. --set held_out.qa=[qa/squad2.dev.jsonl.gz]")
    rng = random.Random(_SEED)  # noqa: S311 (repeatable, and nothing to guard)
    return [row for rows in files for row in rng.sample(rows, min(given.most_questions, len(rows)))]


def judgement(rows: Sequence[QaRow], found: Sequence[Outcomes], before: Sequence[Outcomes]) -> Judgement:
    """The measures of ``found``, and of ``before``, the base without the adapter, on the same questions."""
    return Judgement(
        [
            _mean("format_valid", found, lambda one: one.valid, target=VALID),
            _twice("reference_shown_beyond_twice_base", found, before),
            _mean("cited_passage_supports", found, lambda one: one.cited_right, target=RIGHT_CITATION),
            _mean("right", found, _right),
            _mean("reference_shown", found, lambda one: one.holds),
            _mean("reference_shown_base", before, lambda one: one.holds),
            _mean("format_valid_base", before, lambda one: one.valid),
            _mean("unanswerable_declined", found, lambda one: None if one.answerable else not one.answered),
            _mean("answerable_answered", found, lambda one: one.answered if one.answerable else None),
        ],
        decides="right",
        reported={"questions": len(rows)},
    )


def _right(one: Outcomes) -> bool | None:
    """What a reader would call right: the reference is shown, or what cannot be answered is declined."""
    return one.holds if one.answerable else not one.answered


def _mean(
    name: str, found: Sequence[Outcomes], of: Callable[[Outcomes], float | bool | None], *, target: float | None = None
) -> Measure:
    """Over the questions of which ``of`` says something."""
    known = {one.id: float(value) for one in found if (value := of(one)) is not None}
    values = np.array(list(known.values()))

    def statistic(rows: Indices) -> float:
        return float(values[rows].mean()) if len(rows) else float("nan")

    return Measure(name, tuple(known), statistic, target=target)


def _twice(name: str, found: Sequence[Outcomes], before: Sequence[Outcomes]) -> Measure:
    """By how much the share of references shown exceeds twice that of before: a ratio is not defined where none was."""
    pairs = [(one, other) for one, other in zip(found, before, strict=True) if one.holds is not None]
    beyond = np.array([float(bool(one.holds)) - TIMES * float(bool(other.holds)) for one, other in pairs])

    def statistic(rows: Indices) -> float:
        return float(beyond[rows].mean()) if len(rows) else float("nan")

    return Measure(name, tuple(one.id for one, _ in pairs), statistic, target=0.0, surely=True)


def _asked(settings: CitationSettings, rows: Sequence[QaRow], model: Path) -> list[Outcomes]:
    catalog = Catalog(home())
    embedder, judges = (catalog.locate(reference, progress=say) for reference in (EMBEDDER, JUDGES))
    asked = Models(model, embedder, judges, catalog.base_of(judges, progress=say) or judges, settings.threads)
    models = f"{fingerprint(model)} {fingerprint(judges)}"
    shaping = f"{models} {prompt.version()} {POLICY.model_dump_json()} {[row.id for row in rows]}"
    folder = home() / "finetune" / "asked"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{hashlib.sha256(shaping.encode()).hexdigest()[:12]}.jsonl"
    return ask_all(rows, asked, kept)


def _as_qa(row: RerankRow) -> QaRow:
    """A question of the ``rerank`` format: it can be answered, and which passages that takes is known."""
    given = [
        QaPassage(text=passage.text, title=passage.title, supporting=passage.relevance > 0) for passage in row.passages
    ]
    return QaRow(id=row.id, question=row.query, passages=tuple(given), answers=(), answerable=True)
