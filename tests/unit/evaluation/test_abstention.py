"""Declining when one should: the matrix, risk against coverage, and what a floor alone would do."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.evaluation.abstention import Graded, Matrix, Point, aurc, floor_losses, matrix, rates, risk_coverage

cases = st.lists(
    st.builds(Graded, st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=6
)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def area(graded: list[Graded]) -> float:
    value = aurc(graded, rng()).value
    assert value is not None
    return value


def test_the_matrix_counts_every_question_once() -> None:
    counts = matrix([(True, True)] * 3 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 4)
    assert counts == Matrix(3, 2, 1, 4)
    assert counts.n == 10
    got = rates(counts, rng())
    assert (got.answered_when_answerable.value, got.answered_when_answerable.n) == (0.6, 5)
    assert (got.declined_when_unanswerable.value, got.declined_when_unanswerable.n) == (0.8, 5)
    assert (got.right.value, got.right.n) == (0.7, 10)


def test_a_rate_of_no_question_has_no_value() -> None:
    assert rates(matrix([(True, True)]), rng()).declined_when_unanswerable.value is None


def test_the_curve_goes_from_the_surest_down() -> None:
    graded = [Graded(0.2, 1), Graded(0.9, 0), Graded(0.5, 0), Graded(0.5, 1)]
    assert risk_coverage(graded) == [Point(0.9, 0.25, 0), Point(0.5, 0.75, 1 / 3), Point(0.2, 1, 0.5)]


def test_the_area_is_the_mean_risk_over_coverages() -> None:
    graded = [Graded(0.9, 0), Graded(0.8, 1), Graded(0.7, 0), Graded(0.6, 1)]
    assert area(graded) == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)


@settings(max_examples=25)
@given(cases)
def test_a_tie_counts_as_the_mean_of_its_orders(graded: list[Graded]) -> None:
    areas = [
        math.fsum(math.fsum(case.risk for case in order[: k + 1]) / (k + 1) for k in range(len(order))) / len(order)
        for order in permutations(graded)
        if all(a.confidence >= b.confidence for a, b in pairwise(order))
    ]
    assert area(graded) == pytest.approx(math.fsum(areas) / len(areas))


@given(cases)
def test_the_curve_ends_at_full_coverage_and_the_mean_risk(graded: list[Graded]) -> None:
    last = risk_coverage(graded)[-1]
    assert last.coverage == 1
    assert last.risk == pytest.approx(math.fsum(case.risk for case in graded) / len(graded))


def test_confidence_that_orders_well_has_the_smaller_area() -> None:
    good = [Graded(1 - place / 10, float(place >= 5)) for place in range(10)]
    bad = [Graded(case.confidence, 1 - case.risk) for case in good]
    assert area(good) < 0.2
    assert area(bad) > 0.5


def test_a_floor_loses_answerable_questions_and_lets_others_through() -> None:
    losses = floor_losses([0.2, 0.4, 0.6, 0.8, 0.9], [0.1, 0.5], [0.0, 0.5, 1.0], rng())
    assert [loss.lost.value for loss in losses] == [0, 0.4, 1]
    assert [loss.let_through.value for loss in losses] == [1, 0.5, 0]
    assert [(loss.lost.n, loss.let_through.n) for loss in losses] == [(5, 2)] * 3
