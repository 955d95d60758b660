"""From the scores of rows to those of pairs: each is that of its document's best piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from serving.answer.types import PairScore


class RowScore(NamedTuple):
    """What a row scores, and how much it is contradicted, where the model has a label for that."""

    score: float
    contradiction: float | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """How many rows a pair became, and whether some of its document is in none of them."""

    rows: int
    truncated: bool


def best(scores: Sequence[RowScore], read: Sequence[Read]) -> tuple[PairScore, ...]:
    """The best row of each pair, the first among equals; ``scores`` are the rows', pair after pair."""
    found: list[PairScore] = []
    begin = 0
    for one in read:
        own = scores[begin : begin + one.rows]
        begin += one.rows
        if own:
            values = [row.score for row in own]
            score = max(values)
            against = max((row.contradiction for row in own if row.contradiction is not None), default=None)
            found.append(PairScore(score, len(own), values.index(score), one.truncated, against))
        else:
            found.append(PairScore(0.0, 0, None, one.truncated))
    return tuple(found)
