"""Relevance by a model: what it is asked, and what is made of its scores."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from serving.answer.relevance import ScoredRelevance
from serving.answer.types import Claim, Deadline, Passage, Span

DEADLINE = Deadline.after(60, time.monotonic)
PASSAGES = [
    Passage(id="a", title="chain", heading_path=("itertools", "chain"), text="..."),
    Passage(id="b", text="..."),
]


class FakeScores:
    """Scores by a table; what is not in it scores 0. Keeps what it was asked."""

    def __init__(self, table: dict[str, float]) -> None:
        self.table = table
        self.asked: list[list[tuple[str, str]]] = []

    async def __call__(self, pairs: Sequence[tuple[str, str]], *, deadline: Deadline) -> list[float]:
        self.asked.append(list(pairs))
        return [self.table.get(statement, 0.0) for statement, _ in pairs]


def claim(text: str, *chunks: int, context: str = "") -> Claim:
    return Claim(text, Span(0, len(text)), chunks=chunks, context=context)


async def test_all_claims_are_asked_at_once_and_the_best_cited_passage_counts() -> None:
    scores = FakeScores({"chain > itertools\nIt joins.": 0.9, "It joins.": 0.1, "It lasts.": 0.59})
    judge = ScoredRelevance(scores, threshold=0.6)
    claims = [claim("It joins.", 0, 1), claim("It joins.", 1), claim("It lasts.", 1)]
    assert await judge.relevant("What joins?", claims, PASSAGES, deadline=DEADLINE) == [True, False, False]
    assert scores.asked == [
        [("It joins.", "What joins?"), ("It lasts.", "What joins?"), ("chain > itertools\nIt joins.", "What joins?")]
    ]


async def test_a_claim_is_read_after_what_it_leans_on_and_without_citations_alone() -> None:
    scores = FakeScores({"A list. It lasts.": 0.6, "Alone.": 0.7})
    claims = [claim("It lasts.", 1, context="A list."), claim("Alone.")]
    judge = ScoredRelevance(scores, threshold=0.6)
    assert await judge.relevant("?", claims, PASSAGES, deadline=DEADLINE) == [True, True]


async def test_without_claims_nothing_is_asked() -> None:
    scores = FakeScores({})
    assert await ScoredRelevance(scores, threshold=0.5).relevant("?", [], PASSAGES, deadline=DEADLINE) == []
    assert scores.asked == []


@pytest.mark.parametrize("threshold", [0.0, 1.0, 7.0])
def test_a_threshold_that_decides_nothing_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        ScoredRelevance(FakeScores({}), threshold=threshold)
