import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.retrieval.fusion import reciprocal_rank_fusion

rankings = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=12), max_size=5)


@given(rankings, st.integers(0, 100))
def test_holds_every_key_once_and_best_first(lists: list[list[int]], k: int) -> None:
    fused = reciprocal_rank_fusion(lists, k)
    assert sorted(key for key, _ in fused) == sorted({key for ranking in lists for key in ranking})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@given(rankings)
def test_scores_are_sums_of_reciprocal_ranks_in_any_order(lists: list[list[int]]) -> None:
    scores = dict(reciprocal_rank_fusion(lists))
    assert scores == dict(reciprocal_rank_fusion(lists[::-1]))
    for key, score in scores.items():
        assert math.isclose(score, sum(1 / (5 + ranking.index(key) + 1) for ranking in lists if key in ranking))


@given(st.lists(st.integers(), unique=True))
def test_one_ranking_keeps_its_order(ranking: list[int]) -> None:
    assert [key for key, _ in reciprocal_rank_fusion([ranking])] == ranking
    assert [key for key, _ in reciprocal_rank_fusion([ranking, ranking])] == ranking


@given(rankings, st.integers(0, 20))
def test_moving_to_the_front_never_lowers_a_key(lists: list[list[int]], key: int) -> None:
    before = dict(reciprocal_rank_fusion(lists)).get(key, 0.0)
    moved = [[key, *(other for other in ranking if other != key)] for ranking in lists]
    assert dict(reciprocal_rank_fusion(moved)).get(key, 0.0) >= before


def test_ties_go_to_the_best_rank_and_then_to_the_first_ranking() -> None:
    assert [key for key, _ in reciprocal_rank_fusion([["a", "b"], ["b", "a"]])] == ["a", "b"]
    assert [key for key, _ in reciprocal_rank_fusion([["x"], ["y"]])] == ["x", "y"]
    # 1/(0+1) equals 1/(0+2) + 1/(0+2): the better single rank wins.
    assert [key for key, _ in reciprocal_rank_fusion([["p", "q"], ["r", "q"], []], k=0)][-1] == "q"


def test_a_repeat_in_one_ranking_counts_once() -> None:
    assert reciprocal_rank_fusion([["a", "a", "b"]]) == reciprocal_rank_fusion([["a", "b"]])


def test_a_negative_constant_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        reciprocal_rank_fusion([["a"]], k=-1)
