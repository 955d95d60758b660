"""Aggregates with their n and a bootstrap interval, and the comparison of two systems on the same cases.

A case that a metric does not apply to carries a reason in place of a number. Such cases are left out of the mean and
counted beside it, by reason; so are NaN and infinities. Nothing is dropped in silence.

Intervals are percentile bootstrap intervals over cases. Where all cases agree the interval is a point, whatever n is:
read it with n. With fewer than two cases there is none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
LEVEL = 0.95
_BLOCK = 1_000_000
"""Drawn indices held at once; a whole bootstrap of a long suite would not fit in memory."""

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
Statistic = Callable[[Indices], float]
"""A number of the cases at these positions (with repeats); NaN where it is not defined, as AUROC is of one class."""

Statistics = Callable[[Indices], Floats]
"""The same, of many resamples at once: one number for each row of positions."""


class NotApplicable(StrEnum):
    """Why a metric says nothing of a case."""

    NO_STATEMENTS = "no_statements"
    NO_CITATIONS = "no_citations"
    NO_REFERENCE = "no_reference"
    NOTHING_TO_FIND = "nothing_to_find"
    RIGHT_DECLINE = "right_decline"
    WRONG_DECLINE = "wrong_decline"
    DECLINED = "declined"
    SEARCH = "search"
    NO_LABEL = "no_label"
    NOT_A_NUMBER = "not_a_number"


Score = float | NotApplicable


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of ``n`` cases and its interval [low, high].

    ``value`` is None when no case applies. ``not_applicable`` counts the other cases by reason. ``undefined`` is how
    many resamples had no value (one class only, say); they are not in the interval.
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    not_applicable: Mapping[str, int] = field(default_factory=dict)
    undefined: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """``ours`` minus ``theirs`` over the ``n`` cases both have a number for.

    ``p`` is the two-sided bootstrap p-value of no difference. ``not_applicable`` counts shared cases that one side or
    both say nothing of; ``ours_alone`` and ``theirs_alone`` those that only one side has.
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    p: float | None = None
    not_applicable: int = 0
    ours_alone: int = 0
    theirs_alone: int = 0
    undefined: int = 0


def mean(scores: Sequence[Score], rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Estimate:
    """The mean of the scores that are numbers, the others counted by reason."""
    numbers = [score for score in scores if _is_number(score)]
    reasons = Counter(_reason(score) for score in scores if not _is_number(score))
    values = np.array(numbers, dtype=np.float64)
    value = math.fsum(values) / len(values) if len(values) else None
    low, high, undefined = _interval(len(values), lambda rows: values[rows].mean(axis=1), rng, resamples)
    return Estimate(value, len(values), low, high, dict(sorted(reasons.items())), undefined)


def estimate(
    n: int,
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    not_applicable: Mapping[str, int] | None = None,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Any statistic of ``n`` cases, by position."""
    left_out = dict(not_applicable or {})
    value = statistic(np.arange(n)) if n else math.nan
    if math.isnan(value):
        return Estimate(None, n, not_applicable=left_out)
    low, high, undefined = _interval(n, _row_by_row(statistic), rng, resamples)
    return Estimate(value, n, low, high, left_out, undefined)


def compare(
    ours: Mapping[str, Score], theirs: Mapping[str, Score], rng: np.random.Generator, *, resamples: int = RESAMPLES
) -> Difference:
    """Paired bootstrap of the difference of means of two systems' scores, by case id."""
    shared = sorted(ours.keys() & theirs.keys())
    both = [(ours[case], theirs[case]) for case in shared]
    pairs = np.array([pair for pair in both if all(map(_is_number, pair))], dtype=np.float64).reshape(-1, 2)
    return paired(
        len(pairs),
        lambda drawn: float(pairs[drawn, 0].mean()),
        lambda drawn: float(pairs[drawn, 1].mean()),
        rng,
        resamples=resamples,
        not_applicable=len(shared) - len(pairs),
        ours_alone=len(ours.keys() - theirs.keys()),
        theirs_alone=len(theirs.keys() - ours.keys()),
    )


def paired(
    n: int,
    ours: Statistic,
    theirs: Statistic,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    not_applicable: int = 0,
    ours_alone: int = 0,
    theirs_alone: int = 0,
) -> Difference:
    """Paired bootstrap of any statistic: both systems are resampled at the same positions."""
    value = ours(np.arange(n)) - theirs(np.arange(n)) if n else math.nan
    aside = (not_applicable, ours_alone, theirs_alone)
    if math.isnan(value):
        return Difference(None, n, None, None, None, *aside)
    drawn = _resampled(n, _row_by_row(lambda positions: ours(positions) - theirs(positions)), rng, resamples)
    defined = drawn[~np.isnan(drawn)]
    low, high = _percentiles(defined, n)
    return Difference(value, n, low, high, _two_sided(defined, n), *aside, undefined=len(drawn) - len(defined))


def _interval(
    n: int, statistics: Statistics, rng: np.random.Generator, resamples: int
) -> tuple[float | None, float | None, int]:
    """The percentile interval over ``n`` cases, and how many resamples had no value."""
    if n < 2:
        return None, None, 0
    drawn = _resampled(n, statistics, rng, resamples)
    defined = drawn[~np.isnan(drawn)]
    low, high = _percentiles(defined, n)
    return low, high, len(drawn) - len(defined)


def _row_by_row(statistic: Statistic) -> Statistics:
    return lambda rows: np.array([statistic(row) for row in rows])


def _resampled(n: int, statistics: Statistics, rng: np.random.Generator, resamples: int) -> Floats:
    at_once = max(1, _BLOCK // n)
    sizes = [min(at_once, resamples - done) for done in range(0, resamples, at_once)]
    return np.concatenate([statistics(rng.integers(0, n, size=(size, n))) for size in sizes])


def _percentiles(values: Floats, n: int) -> tuple[float | None, float | None]:
    if n < 2 or not len(values):
        return None, None
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(values, [tail, 100 - tail])
    return float(low), float(high)


def _two_sided(differences: Floats, n: int) -> float | None:
    # One is added to both counts: a p-value of 0 cannot be had from finitely many resamples.
    if n < 2 or not len(differences):
        return None
    beyond = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (beyond + 1) / (len(differences) + 1))


def _is_number(score: Score) -> bool:
    return not isinstance(score, NotApplicable) and math.isfinite(score)


def _reason(score: Score) -> str:
    return score.value if isinstance(score, NotApplicable) else NotApplicable.NOT_A_NUMBER.value
