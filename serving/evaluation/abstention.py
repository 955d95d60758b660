"""Does the system decline when it should: the answerable × answered matrix, risk against coverage, and score floors.

Neither ALCE nor RAGAS rewards a right "I do not know"; these do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from serving.evaluation.estimates import Estimate, Floats, Indices, estimate, mean


@dataclass(frozen=True, slots=True)
class Matrix:
    """Counts of questions by whether they can be answered and whether they were."""

    answerable_answered: int
    answerable_declined: int
    unanswerable_answered: int
    unanswerable_declined: int

    @property
    def n(self) -> int:
        return (
            self.answerable_answered
            + self.answerable_declined
            + self.unanswerable_answered
            + self.unanswerable_declined
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """The matrix as shares: of answerable questions answered, of unanswerable ones declined, of all treated rightly."""

    answered_when_answerable: Estimate
    declined_when_unanswerable: Estimate
    right: Estimate


@dataclass(frozen=True, slots=True)
class Graded:
    """An answer the system could give: how sure it was, and how wrong the answer is (0 right, 1 wrong)."""

    confidence: float
    risk: float


@dataclass(frozen=True, slots=True)
class Point:
    """Answering only what is at least as sure as ``confidence``: the share answered and the mean risk of that."""

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True)
class FloorLoss:
    """What declining by a score alone would do at one floor (a score equal to it passes).

    ``lost`` is the share of answerable questions whose score is under the floor; ``let_through`` the share of
    unanswerable ones whose score is not.
    """

    floor: float
    lost: Estimate
    let_through: Estimate


def matrix(cases: Iterable[tuple[bool, bool]]) -> Matrix:
    """Counts (answerable, answered) pairs."""
    counts = {(answerable, answered): 0 for answerable in (True, False) for answered in (True, False)}
    for case in cases:
        counts[case] += 1
    return Matrix(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def rates(counts: Matrix, rng: np.random.Generator) -> Rates:
    return Rates(
        answered_when_answerable=_share(counts.answerable_answered, counts.answerable_declined, rng),
        declined_when_unanswerable=_share(counts.unanswerable_declined, counts.unanswerable_answered, rng),
        right=_share(
            counts.answerable_answered + counts.unanswerable_declined,
            counts.answerable_declined + counts.unanswerable_answered,
            rng,
        ),
    )


def risk_coverage(cases: Sequence[Graded]) -> list[Point]:
    """The curve, from the surest case down; cases equally sure make one point."""
    points: list[Point] = []
    covered, risk = 0, 0.0
    ordered = sorted(cases, key=lambda case: -case.confidence)
    for confidence, tied in groupby(ordered, key=lambda case: case.confidence):
        risks = [case.risk for case in tied]
        covered += len(risks)
        risk += math.fsum(risks)
        points.append(Point(confidence, covered / len(cases), risk / covered))
    return points


def aurc(cases: Sequence[Graded], rng: np.random.Generator) -> Estimate:
    """Area under the risk–coverage curve: the mean, over k, of the risk of the k surest cases. Lower is better.

    Cases that are equally sure count as their expectation over every order of them, so their order does not matter.
    """
    confidences = np.array([case.confidence for case in cases], dtype=np.float64)
    risks = np.array([case.risk for case in cases], dtype=np.float64)
    return estimate(len(cases), lambda drawn: _area(confidences[drawn], risks[drawn]), rng)


def floor_losses(
    answerable: Sequence[float], unanswerable: Sequence[float], floors: Sequence[float], rng: np.random.Generator
) -> list[FloorLoss]:
    """What a floor under the best passage's score loses and lets through, at each floor."""
    return [
        FloorLoss(
            floor,
            lost=mean([float(score < floor) for score in answerable], rng),
            let_through=mean([float(score >= floor) for score in unanswerable], rng),
        )
        for floor in floors
    ]


def _share(hits: int, misses: int, rng: np.random.Generator) -> Estimate:
    return mean([1.0] * hits + [0.0] * misses, rng)


def _area(confidences: Floats, risks: Floats) -> float:
    order: Indices = np.argsort(-confidences, kind="stable")
    sure = confidences[order]
    _, starts, sizes = np.unique(-sure, return_index=True, return_counts=True)
    shared = np.add.reduceat(risks[order], starts) / sizes
    # Within a tie every case bears the tie's mean risk, which is what a random order has in expectation.
    expected = np.repeat(shared, sizes)
    return float((np.cumsum(expected) / np.arange(1, len(risks) + 1)).mean())
