"""Means with their n and interval, what is left out of them, and paired comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from serving.evaluation.estimates import NotApplicable, Score, compare, estimate, mean, paired


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_mean_comes_with_its_n_and_interval() -> None:
    got = mean([1.0] * 60 + [0.0] * 40, rng())
    assert got.value == 0.6
    assert got.n == 100
    # The normal interval of a proportion, which the bootstrap comes near at this n.
    assert got.low == pytest.approx(0.504, abs=0.02)
    assert got.high == pytest.approx(0.696, abs=0.02)


def test_the_interval_is_scipys() -> None:
    values = rng(1).random(80)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=rng(2)).confidence_interval
    ours = mean(values.tolist(), rng(3), resamples=4000)
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)


def test_a_seed_decides_the_interval() -> None:
    values: list[Score] = [0.1, 0.5, 0.9, 0.3]
    assert mean(values, rng()) == mean(values, rng())


def test_cases_that_do_not_apply_are_counted_by_reason() -> None:
    scores: list[Score] = [1.0, NotApplicable.RIGHT_DECLINE, math.nan, 0.0, NotApplicable.RIGHT_DECLINE, math.inf]
    got = mean(scores, rng())
    assert (got.value, got.n) == (0.5, 2)
    assert got.not_applicable == {"not_a_number": 2, "right_decline": 2}


@given(st.lists(st.one_of(st.floats(-1, 1), st.sampled_from([*NotApplicable, math.nan, math.inf])), max_size=12))
def test_no_case_is_lost(scores: list[Score]) -> None:
    got = mean(scores, rng(), resamples=5)
    assert got.n + sum(got.not_applicable.values()) == len(scores)
    assert (got.value is None) == (got.n == 0)


@given(st.integers(1, 200))
def test_perfect_is_exactly_one(n: int) -> None:
    got = mean([1.0] * n, rng(), resamples=5)
    assert got.value == 1.0
    assert (got.low, got.high) == ((1.0, 1.0) if n > 1 else (None, None))


def test_resamples_with_no_value_are_counted_and_not_in_the_interval() -> None:
    got = estimate(2, lambda drawn: math.nan if len(set(drawn.tolist())) == 1 else 0.5, rng(), resamples=400)
    assert (got.value, got.low, got.high) == (0.5, 0.5, 0.5)
    assert 120 < got.undefined < 280


def test_long_suites_are_resampled_in_blocks() -> None:
    values: list[Score] = rng(1).random(6000).tolist()
    got = mean(values, rng(), resamples=400)
    assert got.low is not None
    assert got.high is not None
    assert got.high - got.low == pytest.approx(2 * 1.96 * math.sqrt(1 / 12 / 6000), rel=0.15)


def by_case(values: list[Score]) -> dict[str, Score]:
    return {str(case): value for case, value in enumerate(values)}


def test_pairing_sees_what_separate_intervals_do_not() -> None:
    hard = rng(1).random(100)
    theirs: list[Score] = hard.tolist()
    ours: list[Score] = (hard + 0.02).tolist()
    got = compare(by_case(ours), by_case(theirs), rng())
    assert got.value == pytest.approx(0.02)
    assert got.low == pytest.approx(0.02)
    assert got.p is not None
    assert got.p < 0.01
    alone = mean(ours, rng())
    assert alone.low is not None
    assert alone.low < float(np.mean(hard)), "apart, the intervals overlap"


def test_two_systems_of_the_same_worth_do_not_differ() -> None:
    coins = rng(4).integers(0, 2, size=(2, 200)).astype(float)
    got = compare(by_case(coins[0].tolist()), by_case(coins[1].tolist()), rng())
    assert got.p is not None
    assert got.p > 0.05
    assert got.low is not None
    assert got.high is not None
    assert got.low < 0 < got.high


def test_a_comparison_says_which_cases_it_is_not_of() -> None:
    ours: dict[str, Score] = {"a": 1.0, "b": 1.0, "c": NotApplicable.DECLINED, "d": 0.5}
    theirs: dict[str, Score] = {"a": 0.0, "b": 1.0, "c": 1.0, "e": math.nan}
    got = compare(ours, theirs, rng())
    assert (got.value, got.n, got.not_applicable, got.ours_alone, got.theirs_alone) == (0.5, 2, 1, 1, 1)


def test_systems_without_a_common_case_cannot_be_compared() -> None:
    got = compare({"a": 1.0}, {"b": 1.0}, rng())
    assert (got.value, got.n, got.p) == (None, 0, None)


def test_any_statistic_can_be_paired() -> None:
    values = np.arange(50.0)
    got = paired(
        50, lambda drawn: float(np.median(values[drawn]) + 1), lambda drawn: float(np.median(values[drawn])), rng()
    )
    assert (got.value, got.low, got.high) == (1, 1, 1)
