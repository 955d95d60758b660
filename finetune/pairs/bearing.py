"""Sentences that answer a question beside sentences that only speak of the same things, for the relevance judge."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from finetune.data import CorpusRow
from finetune.pairs.falsifying import falsified
from finetune.pairs.groups import RELEVANCE, Group, Row, sentences
from finetune.pairs.ranking import nearest
from serving.answer.prompt import premise
from serving.answer.types import Passage
from serving.evaluation.rows import QaRow, RerankRow

_PASSED_OVER = 0.5
"""Of ranked queries: what is right there is only likely to answer."""


def from_questions(rows: Sequence[QaRow], rng: random.Random) -> Iterator[Group]:
    """Of each passage: its answerable questions beside impossible ones, and questions changed to be impossible."""
    by_passage: dict[str, list[QaRow]] = {}
    for row in rows:
        if row.passages:
            by_passage.setdefault(row.passages[0].text, []).append(row)
    for text, asked in by_passage.items():
        title = asked[0].passages[0].title
        told = sentences(text)
        made = [one for row in asked for one in _asked(row, title, told, text, rng)]
        rng.shuffle(made)
        for start in range(0, len(made), 4):
            yield Group(RELEVANCE, tuple(made[start : start + 4]), "questions")


def _asked(row: QaRow, title: str, told: Sequence[str], text: str, rng: random.Random) -> Iterator[Row]:
    if not row.answerable:
        for sentence in nearest(told, row.question)[: 1 + (rng.random() < 0.25)]:
            yield Row(_put(title, sentence, rng), row.question, label=False)
        return
    right = [sentence for sentence in told if any(answer in sentence for answer in row.answers)]
    if not right:
        return
    sentence = nearest(right, row.question)[0]
    yield Row(_put(title, sentence, rng), row.question, label=True)
    wrong = nearest([one for one in told if one not in right], row.question)
    if wrong and rng.random() < 0.6:
        yield Row(_put(title, wrong[0], rng), row.question, label=False)
    if rng.random() < 0.5:
        for question, _ in falsified(row.question, text, (), rng, 1):
            yield Row(_put(title, sentence, rng), question, label=False)


def from_ranked(rows: Sequence[RerankRow], rng: random.Random) -> Iterator[Group]:
    """The sentence of the right passage that is nearest to the query, beside the nearest of wrong passages."""
    for row in rows:
        right = [passage for passage in row.passages if passage.relevance > 0]
        wrong = [passage for passage in row.passages[:5] if passage.relevance == 0]
        if not right or not wrong or rng.random() < _PASSED_OVER:
            continue
        other = rng.choice(wrong)
        made = [
            Row(
                _put(passage.title, nearest(sentences(passage.text), row.query)[0], rng), row.query, passage is right[0]
            )
            for passage in (right[0], other)
        ]
        yield Group(RELEVANCE, tuple(made), "queries")


def from_facts(rows: Sequence[CorpusRow], wanted: int, rng: random.Random) -> Iterator[Group]:
    """Fields of profiles, asked for by name, beside other fields of the place and the field of other places."""
    facts = [row for row in rows if len(row.heading_path) >= 3 and len(row.text) < 160]
    by_field: dict[str, list[CorpusRow]] = {}
    by_place: dict[str, list[CorpusRow]] = {}
    for row in facts:
        by_field.setdefault(row.heading_path[-1], []).append(row)
        by_place.setdefault(row.title, []).append(row)
    for row in rng.sample(facts, min(wanted, len(facts))):
        field = row.heading_path[-1]
        question = f"What is the {field[:1].lower() + field[1:]} of {row.title}?"
        others = [rng.choice(by_field[field]), rng.choice(by_place[row.title])]
        chosen = [row, *(other for other in others if other.id != row.id and other.text != row.text)]
        made = [Row(_fact(one), question, one is row) for one in chosen]
        yield Group(RELEVANCE, tuple(made), "facts")


def _fact(row: CorpusRow) -> str:
    return premise(Passage(id="", title=row.title, heading_path=row.heading_path, text=" ".join(row.text.split())))


def _put(title: str, sentence: str, rng: random.Random) -> str:
    """A sentence as the judge reads it: under its passage's title, where that has one."""
    return premise(Passage(id="", title=title if rng.random() < 0.8 else "", text=sentence))


def holds(sentence: str, answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in the sentence as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", sentence) for answer in answers if answer.strip())
