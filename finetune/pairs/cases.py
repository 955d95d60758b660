"""Held-out cases that pair encoders are judged on, and calibrated with."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from finetune import data
from finetune.pairs.groups import sentences
from finetune.pairs.ranking import nearest
from finetune.pairs.settings import PairSettings
from serving.answer.types import Passage
from serving.evaluation.rows import QaRow, RerankRow

T = TypeVar("T")
_CHUNKED = "_chunks"
"""In the name of a set that gives one claim over several chunks of its document: the best of them counts."""


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """A claim over one document, or over the chunks of one."""

    name: str
    of: str
    documents: tuple[str, ...]
    claim: str
    supported: bool


@dataclass(frozen=True, slots=True)
class QuestionCase:
    """A sentence offered as an answer. Of an impossible question it is the sentence that is nearest to it."""

    name: str
    question: str
    passage: Passage
    sentence: str
    answerable: bool


def claims(references: Sequence[str], settings: PairSettings) -> list[ClaimCase]:
    found: list[ClaimCase] = []
    for given in data.grounding(references, settings.data_root, held_out=True):
        of = Path(given.reference).name.partition(".")[0]
        together: dict[str, list[str]] = {}
        labels: dict[str, tuple[str, int]] = {}
        for row in given.rows:
            key = row.claim if _CHUNKED in of else row.id
            together.setdefault(key, []).append(row.document)
            labels[key] = (row.claim, row.label)
        cases = [
            ClaimCase(f"{of}/{key}", of, tuple(documents), labels[key][0], supported=labels[key][1] == 1)
            for key, documents in together.items()
        ]
        found += _some(cases, settings.held_out.most)
    return found


def queries(references: Sequence[str], settings: PairSettings) -> dict[str, list[RerankRow]]:
    """The rows of each file, those without a relevant passage left out."""
    return {
        Path(given.reference).name.partition(".")[0]: _some(
            [row for row in given.rows if any(passage.relevance for passage in row.passages)],
            settings.held_out.most_queries,
        )
        for given in data.rerank(references, settings.data_root, held_out=True)
    }


def questions(references: Sequence[str], settings: PairSettings) -> list[QuestionCase]:
    rows = [row for given in data.qa(references, settings.data_root, held_out=True) for row in given.rows]
    return list(_cases(rows))


def _cases(rows: Sequence[QaRow]) -> Iterator[QuestionCase]:
    for row in rows:
        if not row.passages:
            continue
        given = row.passages[0]
        told = sentences(given.text)
        if row.answerable:
            told = [sentence for sentence in told if any(answer in sentence for answer in row.answers)]
        if told:
            passage = Passage(id=row.id, title=given.title, text=given.text)
            sentence = nearest(told, row.question)[0]
            yield QuestionCase(row.id, row.question, passage, sentence, row.answerable)


def _some(rows: list[T], most: int) -> list[T]:
    """All of them, or so many drawn, fewer being part of more: files are often sorted by kind."""
    return rows if len(rows) <= most else random.Random(7).sample(rows, len(rows))[:most]  # noqa: S311 (repeatable)
