"""Conversations about numbers: fields of profiles (``Algeria > Economy > Exports: $52 billion``), asked for by name.

The near misses are what makes them worth learning: the same field of another place, another field of the same place.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from finetune.citation.conversations import Conversation
from finetune.data import CorpusRow
from serving.answer.prompt import DECLINE_LINE
from serving.answer.types import Passage

_SHORT = re.compile(r"[^\n:;]*\d[^\n:;]*")
_LONGEST_VALUE = 80


def from_facts(rows: Sequence[CorpusRow], rng: random.Random, *, most: int, wanted: int = 1_200) -> list[Conversation]:
    """Up to ``wanted`` conversations; a quarter decline, since what the question is about is missing."""
    facts = [row for row in rows if _is_fact(row)]
    by_field: dict[str, list[CorpusRow]] = {}
    by_place: dict[str, list[CorpusRow]] = {}
    for row in facts:
        by_field.setdefault(row.heading_path[-1], []).append(row)
        by_place.setdefault(row.title, []).append(row)
    rng.shuffle(facts)
    found: list[Conversation] = []
    for row in facts[:wanted]:
        same_field = [other for other in by_field[row.heading_path[-1]] if other.title != row.title]
        same_place = [other for other in by_place[row.title] if other.id != row.id]
        near = [*rng.sample(same_field, min(2, len(same_field))), *rng.sample(same_place, min(2, len(same_place)))]
        rng.shuffle(near)
        others = near[: rng.randint(1, max(1, most - 1))]
        declines = rng.random() < 0.25 and bool(others)
        shown = others if declines else [row, *others]
        rng.shuffle(shown)
        reply = DECLINE_LINE if declines else _statement(row, shown.index(row) + 1)
        kind = "fact_missing" if declines else "fact"
        found.append(Conversation(_question(row, rng), tuple(map(_passage, shown)), reply, kind))
    return found


def _is_fact(row: CorpusRow) -> bool:
    return (
        len(row.heading_path) >= 3  # place, topic, field
        and len(row.text) <= _LONGEST_VALUE
        and _SHORT.fullmatch(row.text) is not None
        and not re.search(r"[\[\](){}|]", row.heading_path[-1])
    )


def _question(row: CorpusRow, rng: random.Random) -> str:
    field, place = row.heading_path[-1], row.title
    forms = (
        f"What is the {_lower(field)} of {place}?",
        f"What does the profile of {place} give for {_lower(field)}?",
        f"{place}: what is its {_lower(field)}?",
        f"How is the {_lower(field)} of {place} given?",
    )
    return rng.choice(forms)


def _statement(row: CorpusRow, number: int) -> str:
    value = " ".join(row.text.split()).rstrip(".")
    return f"The {_lower(row.heading_path[-1])} of {row.title} is {value} [{number}]."


def _lower(field: str) -> str:
    return field if field[:2].isupper() else field[:1].lower() + field[1:]


def _passage(row: CorpusRow) -> Passage:
    return Passage(id=row.id, title=row.title, heading_path=tuple(row.heading_path), text=row.text)
