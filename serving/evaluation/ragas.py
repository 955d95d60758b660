"""RAGAS's metrics (explodinggradients/ragas @3e28e9d) over judgements; what its users report as wrong is defined.

* No statements: not applicable, counted apart; the original gives NaN.
* A decline is never scored 0 for being one. A right decline is not applicable to every metric here, and is counted in
  :mod:`serving.evaluation.abstention`. A wrong one has no statements to be faithful, and its relevancy is 0.
* Nothing retrieved: precision and recall are 0 when there was something to find, never 1.
* Perfect is exactly 1: no epsilon in the denominator (the original adds 1e-10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serving.evaluation.estimates import NotApplicable, Score

_ROUNDING = 1e-6
"""How far a computed cosine may leave [-1, 1]."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whether the question can be answered from what there is, and whether the system answered it."""

    answerable: bool
    answered: bool

    @property
    def decline(self) -> NotApplicable | None:
        """What kind of decline this is, None for an answer."""
        if self.answered:
            return None
        return NotApplicable.WRONG_DECLINE if self.answerable else NotApplicable.RIGHT_DECLINE


def faithfulness(attempt: Attempt, supported: Sequence[bool]) -> Score:
    """The share of the answer's statements that the retrieved context supports."""
    if attempt.decline:
        return attempt.decline
    return sum(supported) / len(supported) if supported else NotApplicable.NO_STATEMENTS


def context_precision(useful: Sequence[bool], *, answerable: bool = True) -> Score:
    """Average precision of the retrieved passages, in rank order: 1 when all useful ones stand before all others.

    0 when nothing was retrieved or nothing of it is useful. Not applicable to a question that nothing can answer.
    """
    if not answerable:
        return NotApplicable.NOTHING_TO_FIND
    hits = 0
    precisions: list[float] = []
    for rank, is_useful in enumerate(useful, start=1):
        if is_useful:
            hits += 1
            precisions.append(hits / rank)
    return sum(precisions) / hits if hits else 0.0


def context_recall(attributed: Sequence[bool], *, answerable: bool = True) -> Score:
    """The share of the reference's statements that the retrieved context holds.

    With nothing retrieved, none is attributed and the recall is 0.
    """
    if not answerable:
        return NotApplicable.NOTHING_TO_FIND
    return sum(attributed) / len(attributed) if attributed else NotApplicable.NO_REFERENCE


def answer_relevancy(attempt: Attempt, cosines: Sequence[float], noncommittal: Sequence[bool] = ()) -> Score:
    """The mean cosine of the question with the questions that the answer is found to answer, at least 0.

    0 when all of them are flagged as noncommittal ("I do not know" in an answer's clothes), and for a wrong decline. An
    answer that no question could be made of has no relevancy to measure.
    """
    if attempt.decline:
        return 0.0 if attempt.answerable else NotApplicable.RIGHT_DECLINE
    if not cosines:
        return NotApplicable.NO_STATEMENTS
    if any(abs(cosine) > 1 + _ROUNDING for cosine in cosines):
        raise ValueError(f"a cosine lies in [-1, 1]: {list(cosines)}; normalise the embeddings first")
    if noncommittal and all(noncommittal):
        return 0.0
    return min(1.0, max(0.0, sum(cosines) / len(cosines)))


@dataclass(frozen=True, slots=True)
class Noise:
    """The share of an answer's statements that are wrong and come from a relevant, or an irrelevant, passage.

    Lower is better. The two are exclusive: what a relevant passage also says is laid to it.
    """

    relevant: Score
    irrelevant: Score


def noise_sensitivity(
    attempt: Attempt, correct: Sequence[bool], stated: Sequence[Sequence[bool]], relevant: Sequence[bool]
) -> Noise:
    """Noise sensitivity of one answer.

    ``correct[s]``: the reference supports statement s. ``stated[s][p]``: passage p does. ``relevant[p]``: passage p
    supports something of the reference.
    """
    if attempt.decline:
        return Noise(attempt.decline, attempt.decline)
    if not correct:
        return Noise(NotApplicable.NO_STATEMENTS, NotApplicable.NO_STATEMENTS)
    misled = distracted = 0
    for is_correct, passages in zip(correct, stated, strict=True):
        by_relevant = any(says and bears for says, bears in zip(passages, relevant, strict=True))
        by_irrelevant = any(says and not bears for says, bears in zip(passages, relevant, strict=True))
        misled += by_relevant and not is_correct
        distracted += by_irrelevant and not by_relevant and not is_correct
    return Noise(misled / len(correct), distracted / len(correct))
