"""Routing, verification and calibration against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from serving.evaluation import calibration, routing, verification
from serving.evaluation.routing import Routed

LABELS = ("search", "single_pass", "agentic")
routes = st.lists(st.builds(Routed, st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=30)
labelled = st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.9]), st.booleans()), min_size=2, max_size=30)
both_classes = labelled.filter(lambda cases: len({label for _, label in cases}) == 2)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@settings(max_examples=25)
@given(routes)
def test_confusion_and_macro_f1_are_scikit_learns(cases: list[Routed]) -> None:
    expected = [case.expected for case in cases]
    chosen = [case.chosen for case in cases]
    theirs = metrics.confusion_matrix(expected, chosen, labels=LABELS)
    assert routing.confusion(cases, LABELS).counts == tuple(map(tuple, theirs.tolist()))
    f1 = metrics.f1_score(expected, chosen, average="macro")
    assert routing.macro_f1(cases, LABELS, rng()).value == pytest.approx(f1)
    assert routing.accuracy(cases, rng()).value == pytest.approx(metrics.accuracy_score(expected, chosen))


def test_queries_without_a_label_are_counted_apart() -> None:
    cases = [Routed("search", "search"), Routed(None, "agentic"), Routed("agentic", "search")]
    assert routing.confusion(cases, LABELS).unlabelled == 1
    costs = {("agentic", "search"): 4.0}
    for got in (
        routing.accuracy(cases, rng()),
        routing.macro_f1(cases, LABELS, rng()),
        routing.expected_cost(cases, costs, rng()),
    ):
        assert (got.n, got.not_applicable) == (2, {"no_label": 1})


def test_an_error_costs_what_it_is_said_to() -> None:
    cases = [Routed("agentic", "search"), Routed("search", "agentic"), Routed("search", "search")]
    costs = {("agentic", "search"): 5.0, ("search", "agentic"): 1.0}
    assert routing.expected_cost(cases, costs, rng()).value == 2


def test_an_error_without_a_price_is_refused() -> None:
    with pytest.raises(KeyError):
        routing.expected_cost([Routed("agentic", "search")], {}, rng())


def test_a_label_that_is_not_named_is_refused() -> None:
    with pytest.raises(ValueError, match="add it to the labels"):
        routing.macro_f1([Routed("agentic", "chat")], LABELS, rng())


@settings(max_examples=25)
@given(both_classes, st.sampled_from([0.1, 0.2, 0.5]))
def test_verifier_figures_are_scikit_learns(cases: list[tuple[float, bool]], threshold: float) -> None:
    scores = [score for score, _ in cases]
    supported = [label for _, label in cases]
    passed = [score >= threshold for score in scores]
    got = verification.report(scores, supported, threshold, rng())
    assert got.balanced_accuracy.value == pytest.approx(metrics.balanced_accuracy_score(supported, passed))
    assert got.auroc.value == pytest.approx(metrics.roc_auc_score(supported, scores))
    assert got.recall.value == pytest.approx(metrics.recall_score(supported, passed))
    assert got.recall.n == sum(supported)
    assert got.precision.n == sum(passed)
    if any(passed):
        assert got.precision.value == pytest.approx(metrics.precision_score(supported, passed))
    else:
        assert got.precision.value is None


def test_one_class_has_no_balanced_accuracy_and_no_auroc() -> None:
    got = verification.report([0.2, 0.9], [True, True], 0.5, rng())
    assert (got.balanced_accuracy.value, got.auroc.value) == (None, None)
    assert got.recall.value == 0.5


def test_a_score_at_the_threshold_passes() -> None:
    assert verification.report([0.5, 0.1], [True, False], 0.5, rng()).balanced_accuracy.value == 1


@pytest.mark.parametrize("scores", [[0.1], [0.1, math.nan]])
def test_scores_that_do_not_fit_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="score"):
        verification.report(scores, [True, False], 0.5, rng())


def test_an_interval_covers_its_value() -> None:
    draws = np.random.default_rng(1)
    supported = draws.random(300) < 0.5
    scores = np.clip(draws.normal(0.4 + 0.2 * supported, 0.2), 0, 1)
    got = verification.report(scores.tolist(), supported.tolist(), 0.5, rng()).auroc
    assert got.low is not None
    assert got.high is not None
    assert got.value is not None
    assert got.low < got.value < got.high
    assert got.high - got.low < 0.15


def test_calibration_error_is_the_weighted_gap() -> None:
    sure = [0.95] * 10 + [0.55] * 10
    true = [True] * 9 + [False] + [True] * 2 + [False] * 8
    assert calibration.calibration_error(sure, true, rng()).value == pytest.approx((0.05 * 10 + 0.35 * 10) / 20)


@settings(max_examples=25)
@given(labelled)
def test_bins_hold_every_case_and_give_the_error(cases: list[tuple[float, bool]]) -> None:
    sure = [score for score, _ in cases]
    true = [label for _, label in cases]
    bins = calibration.reliability(sure, true)
    assert sum(each.n for each in bins) == len(cases)
    error = sum(each.n * abs(each.accuracy - each.confidence) for each in bins) / len(cases)
    assert calibration.calibration_error(sure, true, rng()).value == pytest.approx(error)


def test_certainty_falls_in_the_last_bin() -> None:
    assert [(each.low, each.n) for each in calibration.reliability([1.0, 0.9, 0.0], [True, True, False])] == [
        (0.0, 1),
        (0.9, 2),
    ]


def test_a_score_that_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="probabilities"):
        calibration.reliability([1.2], [True])
