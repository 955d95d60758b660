"""Score floors: what is proposed loses no more than it may, and no higher floor does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from serving.evaluation import score_floors
from serving.evaluation.score_floors import STEPS, calibrate, effect, lost_at_most, propose

SCORE = st.floats(0, 1) | st.sampled_from([0.0, 0.001, 0.29, 0.35, 0.351, 0.999, 1.0])
SCORES = st.lists(SCORE, min_size=1, max_size=60)
LOSE = st.floats(0.0001, 0.5) | st.sampled_from([0.005, 0.1, 0.29, 1 / 3])


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def lost(scores: list[float], floor: float) -> float:
    return sum(score < floor for score in scores) / len(scores)


@settings(max_examples=40)
@given(SCORES, SCORES, LOSE)
def test_the_proposed_floor_loses_no_more_and_a_higher_one_does(
    answerable: list[float], unanswerable: list[float], lose: float
) -> None:
    made = propose(answerable, unanswerable, lose=lose, rng=rng())
    assert made.exact.value is not None
    assert lost(answerable, made.exact.value) <= lose < lost(answerable, math.nextafter(made.exact.value, 2))
    assert made.at.loss.lost.value == lost(answerable, made.setting) <= lose
    assert made.at.loss.let_through.value == pytest.approx(1 - lost(unanswerable, made.setting))


@settings(max_examples=40)
@given(SCORES, LOSE)
def test_what_is_proposed_is_a_setting_just_under_the_exact_floor(answerable: list[float], lose: float) -> None:
    made = propose(answerable, [], lose=lose, rng=rng())
    assert made.exact.value is not None
    assert made.setting == round(made.setting * STEPS) / STEPS
    assert made.setting <= made.exact.value < made.setting + 1.001 / STEPS
    assert made.at.loss.floor == made.setting


@settings(max_examples=40)
@given(SCORES, SCORES)
def test_the_strict_floor_stops_all_others_and_is_the_least_setting_to(
    answerable: list[float], unanswerable: list[float]
) -> None:
    strict = calibrate(answerable, unanswerable, current=0.35, lose=0.005, rng=rng()).strict
    if max(unanswerable) == 1.0:
        assert strict is None
        return
    assert strict is not None
    assert strict.loss.let_through.value == 0.0
    assert strict.loss.lost.value == lost(answerable, strict.loss.floor)
    assert max(unanswerable) >= strict.loss.floor - 1.001 / STEPS


@settings(max_examples=40)
@given(SCORES, SCORES)
def test_histograms_count_each_score_once_and_agree_with_the_floors(
    answerable: list[float], unanswerable: list[float]
) -> None:
    made = calibrate(answerable, unanswerable, current=0.35, lose=0.005, rng=rng())
    assert made.unanswerable is not None
    for place, loss in enumerate(made.floors[:-1]):  # at 1, a score of 1 still passes
        assert loss.lost.value == pytest.approx(sum(made.answerable.histogram[:place]) / len(answerable))
        assert loss.let_through.value == pytest.approx(sum(made.unanswerable.histogram[place:]) / len(unanswerable))
    assert made.answerable.lowest == min(answerable)
    assert made.answerable.highest == max(answerable)


@given(st.integers(0, 300), st.integers(1, 3000))
def test_the_bound_is_that_of_clopper_and_pearson(hits: int, more: int) -> None:
    n = hits + more
    assert lost_at_most(hits, n) == pytest.approx(beta.ppf(0.95, hits + 1, n - hits), abs=1e-9)
    assert lost_at_most(n, n) == 1.0


@settings(max_examples=30)
@given(st.floats(0.0005, 0.5))
def test_as_many_as_are_needed_show_it_and_one_fewer_do_not(lose: float) -> None:
    needed = propose([0.5], [], lose=lose, rng=rng()).needed
    assert lost_at_most(0, needed) <= lose * (1 + 1e-9)
    assert needed == 1 or lost_at_most(0, needed - 1) > lose


def test_a_share_is_shown_by_enough_questions_alone() -> None:
    assert not propose([0.5] * 597, [], lose=0.005, rng=rng()).shown
    assert propose([0.5] * 598, [], lose=0.005, rng=rng()).shown


def test_the_bound_holds_for_a_floor_chosen_on_the_same_scores() -> None:
    """Scores are uniform, so a floor truly loses its own value: the bound must be above it 95 times in 100."""
    drawn = rng()
    held = 0
    for _ in range(400):
        scores = drawn.random(100)
        floor = score_floors._highest(scores, 0.05)
        held += lost_at_most(5, 100) >= floor
    assert held / 400 == pytest.approx(0.95, abs=0.04)


def test_the_interval_of_the_floor_holds_it_and_has_an_n() -> None:
    made = propose(rng().random(400).tolist(), [], lose=0.05, rng=rng()).exact
    assert made.n == 400
    assert made.value is not None
    assert made.low is not None
    assert made.high is not None
    assert 0 < made.low <= made.value <= made.high < 0.2


def test_scores_that_tell_kinds_apart_and_scores_that_do_not() -> None:
    apart = calibrate([0.8, 0.9], [0.1, 0.2], current=0.5, lose=0.005, rng=rng())
    assert apart.separation.value == 1.0
    assert apart.strict is not None
    assert apart.strict.loss.lost.value == 0.0
    same = calibrate([0.5, 0.6], [0.5, 0.6], current=0.55, lose=0.005, rng=rng())
    assert same.separation.value == 0.5
    assert (same.current.loss.lost.value, same.current.loss.let_through.value) == (0.5, 0.5)


def test_answerable_questions_are_needed_and_others_are_not() -> None:
    with pytest.raises(ValueError, match="no answerable question"):
        calibrate([], [0.5], current=0.3, lose=0.005, rng=rng())
    alone = calibrate([0.4, 0.6], [], current=0.3, lose=0.005, rng=rng())
    assert (alone.unanswerable, alone.strict, alone.separation.value) == (None, None, None)
    assert alone.proposal.setting == 0.4
    assert alone.proposal.at.loss.let_through.value is None


def test_one_floor_counts_equals_as_kept() -> None:
    made = effect([0.35, 0.34], [0.35], 0.35, rng())
    assert (made.loss.lost.value, made.loss.let_through.value) == (0.5, 1.0)
