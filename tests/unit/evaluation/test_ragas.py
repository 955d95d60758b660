"""RAGAS's metrics, and each case that its users report as wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from serving.evaluation.estimates import NotApplicable
from serving.evaluation.ragas import (
    Attempt,
    Noise,
    answer_relevancy,
    context_precision,
    context_recall,
    faithfulness,
    noise_sensitivity,
)

ANSWERED = Attempt(answerable=True, answered=True)
RIGHT_DECLINE = Attempt(answerable=False, answered=False)
WRONG_DECLINE = Attempt(answerable=True, answered=False)
verdicts = st.lists(st.booleans(), max_size=12)


def test_faithfulness_is_the_share_of_supported_statements() -> None:
    assert faithfulness(ANSWERED, [True, False, True, True]) == 0.75


def test_an_answer_without_statements_is_not_applicable() -> None:
    assert faithfulness(ANSWERED, []) is NotApplicable.NO_STATEMENTS


@given(verdicts, verdicts)
def test_a_right_decline_is_never_scored_zero(judged: list[bool], others: list[bool]) -> None:
    stated = [[False] * len(others)] * len(judged)
    noise = noise_sensitivity(RIGHT_DECLINE, judged, stated, others)
    scores = [
        faithfulness(RIGHT_DECLINE, judged),
        answer_relevancy(RIGHT_DECLINE, [0.0] * len(judged), judged),
        noise.relevant,
        noise.irrelevant,
    ]
    assert scores == [NotApplicable.RIGHT_DECLINE] * 4
    assert context_precision(judged, answerable=False) is NotApplicable.NOTHING_TO_FIND
    assert context_recall(judged, answerable=False) is NotApplicable.NOTHING_TO_FIND


def test_a_wrong_decline_is_not_relevant() -> None:
    assert answer_relevancy(WRONG_DECLINE, [0.9]) == 0
    assert faithfulness(WRONG_DECLINE, []) is NotApplicable.WRONG_DECLINE


def test_an_empty_context_is_never_perfect() -> None:
    assert context_precision([]) == 0
    assert context_recall([False, False]) == 0


def test_a_reference_without_statements_has_no_recall() -> None:
    assert context_recall([]) is NotApplicable.NO_REFERENCE


@given(st.integers(1, 60), st.integers(0, 5))
def test_perfect_is_exactly_one(useful: int, rest: int) -> None:
    assert context_precision([True] * useful + [False] * rest) == 1.0
    assert context_recall([True] * useful) == 1.0
    assert faithfulness(ANSWERED, [True] * useful) == 1.0
    assert answer_relevancy(ANSWERED, [1.0] * useful) == 1.0


@given(verdicts.filter(any))
def test_context_precision_is_average_precision(useful: list[bool]) -> None:
    theirs = average_precision_score(useful, [-place for place in range(len(useful))])
    assert context_precision(useful) == pytest.approx(theirs)


@given(verdicts)
def test_context_precision_differs_from_the_originals_by_its_epsilon_alone(useful: list[bool]) -> None:
    original = sum((sum(useful[: k + 1]) / (k + 1)) * useful[k] for k in range(len(useful))) / (sum(useful) + 1e-10)
    assert context_precision(useful) == pytest.approx(original, abs=1e-9)


def test_context_recall_is_the_share_of_the_reference_found() -> None:
    assert context_recall([True, False, False, True]) == 0.5


def test_relevancy_is_the_mean_cosine() -> None:
    assert answer_relevancy(ANSWERED, [0.9, 0.6, 0.3]) == pytest.approx(0.6)
    assert answer_relevancy(ANSWERED, [-0.5]) == 0
    assert answer_relevancy(ANSWERED, [1.0000001]) == 1
    assert answer_relevancy(ANSWERED, []) is NotApplicable.NO_STATEMENTS


def test_an_answer_is_noncommittal_only_when_all_say_so() -> None:
    assert answer_relevancy(ANSWERED, [1.0, 1.0], [True, True]) == 0
    assert answer_relevancy(ANSWERED, [1.0, 1.0], [True, False]) == 1


def test_a_number_that_is_no_cosine_is_refused() -> None:
    with pytest.raises(ValueError, match="normalise"):
        answer_relevancy(ANSWERED, [12.0])


def test_noise_is_laid_to_the_passages_that_say_it() -> None:
    got = noise_sensitivity(
        ANSWERED,
        correct=[True, False, False, False],
        stated=[[True, True], [True, True], [False, True], [False, False]],
        relevant=[True, False],
    )
    # Of four statements: right; wrong from both, laid to the relevant one; wrong from noise; made up.
    assert got == Noise(relevant=0.25, irrelevant=0.25)


def test_noise_of_nothing_is_not_applicable() -> None:
    assert noise_sensitivity(ANSWERED, [], [], []).relevant is NotApplicable.NO_STATEMENTS


def test_each_statement_is_judged_against_each_passage() -> None:
    with pytest.raises(ValueError, match="zip"):
        noise_sensitivity(ANSWERED, [True], [[True]], [True, False])
