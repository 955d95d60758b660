"""Ranking metrics against trec_eval, on random judgements."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.evaluation import retrieval
from serving.evaluation.estimates import NotApplicable

DOCS = [f"d{n}" for n in range(12)]
QUERIES = [f"q{n}" for n in range(6)]

Judged = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]

grades = st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3), min_size=1)
scores = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0]), min_size=1)
judgements = st.dictionaries(st.sampled_from(QUERIES), grades, min_size=1)
runs = st.dictionaries(st.sampled_from(QUERIES), scores, min_size=1)

PEERS = {
    "nDCG": (retrieval.ndcg(), ir_measures.nDCG),
    "nDCG@3": (retrieval.ndcg(3), ir_measures.nDCG @ 3),
    "RR": (retrieval.reciprocal_rank(), ir_measures.RR),
    "RR at least 2": (retrieval.reciprocal_rank(at_least=2), ir_measures.RR(rel=2)),
    "R@3": (retrieval.recall(3), ir_measures.R @ 3),
    "R@5 at least 2": (retrieval.recall(5, at_least=2), ir_measures.R(rel=2) @ 5),
    "AP": (retrieval.average_precision(), ir_measures.AP),
    "AP@4": (retrieval.average_precision(4), ir_measures.AP @ 4),
    "AP at least 2": (retrieval.average_precision(at_least=2), ir_measures.AP(rel=2)),
}


@pytest.mark.parametrize("name", PEERS)
@settings(max_examples=60)
@given(judged=judgements, run=runs)
def test_every_query_scores_as_in_trec_eval(name: str, judged: Judged, run: Run) -> None:
    ours, theirs = PEERS[name]
    expected = {each.query_id: each.value for each in ir_measures.iter_calc([theirs], judged, run)}
    for query, score in retrieval.by_query(ours, judged, run).items():
        if query not in judged:
            assert score is NotApplicable.NO_LABEL
        elif score is NotApplicable.NOTHING_TO_FIND:
            assert expected[query] == 0
        else:
            assert score == pytest.approx(expected[query], abs=1e-6)


def test_the_mean_is_trec_evals_when_every_query_has_something_to_find() -> None:
    judged = {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}, "missing": {"d4": 1}}
    run = {"q1": {"d9": 1.0, "d1": 1.0, "d2": 0.5}, "q2": {"d3": 1.0}}
    expected = ir_measures.calc_aggregate([ir_measures.nDCG], judged, run)[ir_measures.nDCG]
    got = retrieval.average(retrieval.ndcg(), judged, run, np.random.default_rng(0))
    assert got.value == pytest.approx(expected)
    assert got.n == 3


def test_a_judged_query_that_was_not_run_scores_zero_and_an_unjudged_one_is_apart() -> None:
    judged = {"q1": {"d1": 1}, "missing": {"d1": 1}, "empty": {"d1": 0}}
    run = {"q1": {"d1": 1.0}, "unjudged": {"d1": 1.0}, "empty": {"d1": 1.0}}
    got = retrieval.average(retrieval.reciprocal_rank(), judged, run, np.random.default_rng(0))
    assert (got.value, got.n) == (0.5, 2)
    assert got.not_applicable == {"no_label": 1, "nothing_to_find": 1}


def test_equal_scores_are_ranked_by_id_from_the_last() -> None:
    assert retrieval.rank({"a": 1.0, "c": 1.0, "b": 1.0, "d": 2.0}) == ["d", "c", "b", "a"]


def test_reciprocal_rank_can_be_cut() -> None:
    assert retrieval.reciprocal_rank(2)(["x", "y", "z"], {"z": 1}) == 0
    assert retrieval.reciprocal_rank(3)(["x", "y", "z"], {"z": 1}) == 1 / 3


def test_a_right_ranking_is_exactly_one() -> None:
    grades = {"a": 3, "b": 2, "c": 1}
    for metric in (retrieval.ndcg(), retrieval.average_precision(), retrieval.reciprocal_rank(), retrieval.recall(3)):
        assert metric(["a", "b", "c"], grades) == 1.0
