"""Conversations about numbers: fields of profiles (``Algeria > Economy > Exports: $52 billion``), asked for by name.

The near misses are what makes them worth learning: the same field of another place, another field of the same place,
the same field of another year.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from finetune.citation.conversations import Conversation
from finetune.data import CorpusRow
from serving.answer.prompt import DECLINE_LINE
from serving.answer.types import Passage

_SHORT = re.compile(r"[^\n:;]*\d[^\n:;]*")
_YEARLY = re.compile(r"^(?P<year>(?:19|20)\d\d): (?P<value>[^\n:;]*\d[^\n:;]*)$", re.MULTILINE)
_LONGEST_VALUE = 80
MISSING_SHARE = 0.25
"""Of the questions, those whose passage is left out."""


@dataclass(frozen=True, slots=True)
class _Fact:
    """A field of a place. ``year`` is empty where the profile gives one value only."""

    place: str
    field: str
    value: str
    passage: Passage
    year: str = ""

    @property
    def subject(self) -> str:
        return f"the {_lower(self.field)} of {self.place}"

    def statement(self, number: int) -> str:
        value = " ".join(self.value.split()).rstrip(".")
        return f"T{self.subject[1:]} is {value} [{number}]."


_T = TypeVar("_T", _Fact, list[_Fact])


class Facts:
    """Makes conversations of up to ``most`` passages from the rows of a corpus of profiles."""

    def __init__(self, rows: Sequence[CorpusRow], rng: random.Random, *, most: int) -> None:
        self._rng = rng
        self._most = most
        self._single: list[_Fact] = []
        self._yearly: list[list[_Fact]] = []
        self._by_field: dict[str, list[_Fact]] = {}
        self._by_place: dict[str, list[_Fact]] = {}
        for row in rows:
            self._add(row)

    def single(self, wanted: int) -> list[Conversation]:
        """One field of one place; a quarter decline, since what the question is about is missing."""
        found = []
        for fact in self._some(self._single, wanted):
            others = self._near(fact)
            declines = bool(others) and self._rng.random() < MISSING_SHARE
            question = self._rng.choice(_QUESTIONS).format(field=_lower(fact.field), place=fact.place)
            found.append(self._asked(question, () if declines else (fact,), others, "fact"))
        return found

    def dated(self, wanted: int) -> list[Conversation]:
        """Values of several years, each in a passage of its own: the latest is meant, or the year that is asked for."""
        found = []
        for years in self._some(self._yearly, wanted):
            one = max(years, key=lambda fact: fact.year)
            question = f"What is {one.subject}?"
            shown = list(years)
            if self._rng.random() < 0.6:
                one = self._rng.choice(years)
                question = f"What was {one.subject} in {one.year}?"
                if self._rng.random() < MISSING_SHARE:
                    shown.remove(one)
            others = [*(fact for fact in shown if fact is not one), *self._near(one)[:1]]
            found.append(self._asked(question, (one,) if one in shown else (), others, "year"))
        return found

    def compared(self, wanted: int) -> list[Conversation]:
        """The same field of two places: both values, each from its passage."""
        found = []
        for one in self._some(self._single, wanted):
            same = [other for other in self._by_field[one.field] if other.place != one.place]
            if not same:
                continue
            two = self._rng.choice(same)
            question = self._rng.choice(_COMPARISONS).format(field=_lower(one.field), one=one.place, two=two.place)
            others = [fact for fact in self._near(one) if fact is not two]
            found.append(self._asked(question, (one, two), others, "comparison"))
        return found

    def _add(self, row: CorpusRow) -> None:
        # place, topic, field
        if len(row.heading_path) < 3 or re.search(r"[\[\](){}|]", row.heading_path[-1]):
            return
        place, field = row.title, row.heading_path[-1]
        if len(row.text) <= _LONGEST_VALUE and _SHORT.fullmatch(row.text):
            fact = _Fact(place, field, row.text, _passage(row, row.text))
            self._single.append(fact)
            self._by_field.setdefault(field, []).append(fact)
            self._by_place.setdefault(place, []).append(fact)
            return
        years = [
            _Fact(place, field, line["value"], _passage(row, line[0]), line["year"])
            for line in _YEARLY.finditer(row.text)
        ]
        if len(years) > 1:
            self._yearly.append(years)

    def _some(self, of: Sequence[_T], wanted: int) -> list[_T]:
        return self._rng.sample(of, min(wanted, len(of)))

    def _near(self, fact: _Fact) -> list[_Fact]:
        """The same field of other places and other fields of the same place, fewer than make a full conversation."""
        same_field = [other for other in self._by_field.get(fact.field, ()) if other.place != fact.place]
        same_place = [other for other in self._by_place.get(fact.place, ()) if other.field != fact.field]
        near = [*self._some(same_field, 3), *self._some(same_place, 3)]
        self._rng.shuffle(near)
        return near[: self._rng.randint(1, max(1, self._most - 1))]

    def _asked(self, question: str, told: Sequence[_Fact], others: Sequence[_Fact], kind: str) -> Conversation:
        shown = [*told, *others][: max(self._most, len(told))]
        self._rng.shuffle(shown)
        passages = tuple(fact.passage for fact in shown)
        if not told:
            return Conversation(question, passages, DECLINE_LINE, f"{kind}_missing")
        told = sorted(told, key=shown.index)
        return Conversation(question, passages, " ".join(fact.statement(shown.index(fact) + 1) for fact in told), kind)


_QUESTIONS = (
    "What is the {field} of {place}?",
    "What does the profile of {place} give for {field}?",
    "{place}: what is its {field}?",
    "How is the {field} of {place} given?",
)
_COMPARISONS = (
    "Compare the {field} of {one} and {two}.",
    "What is the {field} of {one}, and that of {two}?",
    "How does the {field} of {one} compare with that of {two}?",
)


def _lower(field: str) -> str:
    return field if field[:2].isupper() else field[:1].lower() + field[1:]


def _passage(row: CorpusRow, text: str) -> Passage:
    return Passage(id=row.id, title=row.title, heading_path=tuple(row.heading_path), text=text)
