"""Relevance by a model: a claim bears on a question when the best of its statements answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from serving.answer.prompt import offered
from serving.answer.types import Claim, Deadline, Passage


class PairScores(Protocol):
    """Scores (statement, question) pairs in [0, 1], in order."""

    async def __call__(self, pairs: Sequence[tuple[str, str]], *, deadline: Deadline) -> Sequence[float]: ...


class ScoredRelevance:
    """The seam :class:`~serving.answer.seams.Relevance` over a model that scores pairs, asked once for all claims.

    A claim is read after what it leans on, under the title and headings of each passage that it cites; the best counts,
    and must reach ``threshold``. A claim that cites nothing is read alone.
    """

    def __init__(self, scores: PairScores, *, threshold: float) -> None:
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"threshold is {threshold}, and must lie between 0 and 1: 0.5 is the usual one.")
        self._scores = scores
        self._threshold = threshold

    async def relevant(
        self, question: str, claims: Sequence[Claim], passages: Sequence[Passage], *, deadline: Deadline
    ) -> list[bool]:
        statements = [_statements(claim, passages) for claim in claims]
        asked = sorted({statement for one in statements for statement in one})
        if not asked:
            return []
        scores = await self._scores([(statement, question) for statement in asked], deadline=deadline)
        by_statement = dict(zip(asked, scores, strict=True))
        return [max(by_statement[statement] for statement in one) >= self._threshold for one in statements]


def _statements(claim: Claim, passages: Sequence[Passage]) -> set[str]:
    text = f"{claim.context} {claim.text}".strip()
    return {offered(passages[chunk], text) for chunk in claim.chunks} or {text}
