"""A score floor from questions whose answerability is known: what each floor loses, and one that loses next to none.

A question's score is that of its best passage, in [0, 1]; it is lost when that is under the floor, since then nothing
is left to compose from. The floor is there to discard noise. It is not what tells answerable questions from others: a
floor that stops all of the others loses far too many (:data:`serving.evaluation.published.LOST_BY_A_STRICT_FLOOR`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serving.evaluation.abstention import FloorLoss, floor_losses
from serving.evaluation.estimates import LEVEL, Estimate, Floats, estimate, mean
from serving.evaluation.verification import auroc

STEPS = 1000
"""A setting is rounded to one part in so many: more would be noise."""

BINS = 20
"""Bins of the histograms, over [0, 1]; their edges are the floors that are tabled."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How scores lie. ``histogram`` counts them in :data:`BINS` equal bins over [0, 1]."""

    mean: Estimate
    lowest: float
    p05: float
    median: float
    p95: float
    highest: float
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """What a floor does to these questions, and ``lost_at_most``: the share of all such questions that it loses is
    under this, with 95 % confidence (one-sided, exact). None without answerable questions.
    """

    loss: FloorLoss
    lost_at_most: float | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """The highest floor that loses at most the share ``lose`` of the answerable questions.

    ``exact`` is that floor with its bootstrap interval, ``setting`` the same rounded down, and ``at`` what it does.
    ``shown``: these questions show, with 95 % confidence, that it loses no more; ``needed`` is how many answerable
    ones, none of them lost, that takes.
    """

    lose: float
    exact: Estimate
    setting: float
    at: Floor
    shown: bool
    needed: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """``strict`` is the least floor that stops all unanswerable questions; None where there are none, or no floor does.

    ``separation`` is the chance that an answerable question scores above an unanswerable one (AUROC).
    """

    answerable: Spread
    unanswerable: Spread | None
    separation: Estimate
    current: Floor
    proposal: Proposal
    strict: Floor | None
    floors: tuple[FloorLoss, ...]


def calibrate(
    answerable: Sequence[float], unanswerable: Sequence[float], *, current: float, lose: float, rng: np.random.Generator
) -> Calibration:
    """All figures of the best passages' scores. Raises ValueError without an answerable question."""
    if not answerable:
        raise ValueError("no answerable question has a score; a floor is chosen by what it loses of those")
    above = _just_above(max(unanswerable)) if unanswerable else None
    return Calibration(
        answerable=_spread(answerable, rng),
        unanswerable=_spread(unanswerable, rng) if unanswerable else None,
        separation=_separation(answerable, unanswerable, rng),
        current=effect(answerable, unanswerable, current, rng),
        proposal=propose(answerable, unanswerable, lose=lose, rng=rng),
        strict=None if above is None else effect(answerable, unanswerable, above, rng),
        floors=tuple(floor_losses(answerable, unanswerable, [edge / BINS for edge in range(BINS + 1)], rng)),
    )


def propose(
    answerable: Sequence[float], unanswerable: Sequence[float], *, lose: float, rng: np.random.Generator
) -> Proposal:
    """The highest floor that loses at most the share ``lose``, in (0, 1), of at least one answerable question."""
    scores = np.array(answerable, dtype=np.float64)
    exact = estimate(len(scores), lambda drawn: _highest(scores[drawn], lose), rng)
    setting = _rounded_down(_highest(scores, lose))
    at = effect(answerable, unanswerable, setting, rng)
    shown = at.lost_at_most is not None and at.lost_at_most <= lose
    return Proposal(lose, exact, setting, at, shown, needed=math.ceil(math.log(1 - LEVEL) / math.log1p(-lose)))


def effect(answerable: Sequence[float], unanswerable: Sequence[float], floor: float, rng: np.random.Generator) -> Floor:
    """What one floor does."""
    (loss,) = floor_losses(answerable, unanswerable, [floor], rng)
    lost = sum(score < floor for score in answerable)
    return Floor(loss, lost_at_most(lost, len(answerable)) if answerable else None)


def lost_at_most(lost: int, n: int) -> float:
    """The share that is exceeded with 5 % probability at most, when ``lost`` of ``n`` drawn at random are lost.

    The one-sided bound of Clopper and Pearson: the share p at which ``lost`` or fewer of ``n`` have a chance of 5 %.
    It holds too for a floor that was put at the (lost + 1)-th lowest of these very scores, whatever their distribution.
    """
    if lost >= n:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        low, high = (share, high) if _at_most(lost, n, share) > 1 - LEVEL else (low, share)
    return high


def _at_most(hits: int, n: int, share: float) -> float:
    """The chance of ``hits`` or fewer in ``n`` draws, for a share inside (0, 1)."""
    log_share, log_rest = math.log(share), math.log1p(-share)
    choose = math.lgamma(n + 1)
    return math.fsum(
        math.exp(choose - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_share + (n - k) * log_rest)
        for k in range(hits + 1)
    )


def _highest(scores: Floats, lose: float) -> float:
    """The highest floor that at most the share ``lose`` of the scores is under: the score after those it may lose."""
    may = int(lose * len(scores)) + 1
    while may / len(scores) > lose:  # not the product alone: it may fall on the wrong side of a whole number
        may -= 1
    return float(np.partition(scores, may)[may])


def _rounded_down(score: float) -> float:
    steps = math.ceil(score * STEPS)
    while steps / STEPS > score:
        steps -= 1
    return steps / STEPS


def _just_above(score: float) -> float | None:
    """The least setting that is above a score; None where that is no setting any more."""
    steps = math.floor(score * STEPS)
    while steps / STEPS <= score:
        steps += 1
    return steps / STEPS if steps <= STEPS else None


def _spread(scores: Sequence[float], rng: np.random.Generator) -> Spread:
    lowest, p05, median, p95, highest = np.percentile(scores, [0, 5, 50, 95, 100]).tolist()
    counts, _ = np.histogram(scores, bins=[edge / BINS for edge in range(BINS + 1)])
    return Spread(mean(list(scores), rng), lowest, p05, median, p95, highest, tuple(counts.tolist()))


def _separation(answerable: Sequence[float], unanswerable: Sequence[float], rng: np.random.Generator) -> Estimate:
    scores = np.array([*answerable, *unanswerable], dtype=np.float64)
    can = np.arange(len(scores)) < len(answerable)
    return estimate(len(scores), lambda drawn: auroc(scores[drawn], can[drawn]), rng)
