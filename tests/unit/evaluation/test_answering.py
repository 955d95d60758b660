"""Whole answers, scored with and without a grader."""

from __future__ import annotations

import numpy as np
import pytest

from serving.answer.wire import Answer
from serving.evaluation import answering, checks
from serving.evaluation.estimates import NotApplicable, Score
from serving.evaluation.findings import Findings
from serving.evaluation.judgements import Entails, Table
from serving.evaluation.records import Asked
from serving.evaluation.rows import QaRow
from tests.unit.evaluation.answers import BREAD, TIDES, answered, declined, qa_row, searched

RIGHT = "The tide at Korran turns every 6 hours."


def findings(*cases: tuple[QaRow, Answer | None], entails: Entails | None = None) -> Findings:
    asked = {
        row.id: Asked(id=row.id, answer=answer, error=None if answer else "deadline_exceeded: late")
        for row, answer in cases
    }
    return answering.score([row for row, _ in cases], asked, entails, np.random.default_rng(1))


def scores(row: QaRow, answer: Answer, entails: Entails | None = None) -> dict[str, Score]:
    return dict(findings((row, answer), entails=entails).cases[0].scores)


def value(found: Findings, name: str) -> float | None:
    return next(metric.estimate.value for metric in found.metrics if metric.name == name)


def test_a_right_answer_is_perfect_throughout() -> None:
    got = scores(qa_row(), answered((RIGHT, (0,)), given=(0,)), lambda *_: True)
    assert got["reference_precision"] == pytest.approx(3 / 6)  # "tide", "korran" and "turn" are not in the reference
    assert {name: got[name] for name in got if name != "reference_precision"} == dict.fromkeys(
        (name for name in got if name != "reference_precision"), 1.0
    )


def test_a_wrong_citation_shows_in_every_check_of_citations() -> None:
    got = scores(qa_row(), answered((RIGHT, (1,))), lambda premise, _: "Tides" in premise)
    assert got["str_em"] == 1
    assert (got["answer_in_cited"], got["cited_supporting"], got["facts_found"]) == (0, 0, 0)
    assert (got["citation_recall"], got["citation_precision"], got["faithfulness"]) == (0, 0, 1)


def test_declines_are_no_zeros() -> None:
    right = scores(qa_row(answerable=False), declined(), lambda *_: True)
    assert (right["right_decision"], right["usefulness"]) == (1, 1)
    assert right["str_em"] == right["faithfulness"] == NotApplicable.RIGHT_DECLINE
    wrong = scores(qa_row(), declined(), lambda *_: True)
    assert (wrong["right_decision"], wrong["usefulness"]) == (0, 0)
    assert wrong["str_em"] == wrong["faithfulness"] == NotApplicable.WRONG_DECLINE
    assert wrong["citation_recall"] == NotApplicable.DECLINED
    assert scores(qa_row(), searched())["str_em"] == NotApplicable.SEARCH


def test_an_answer_to_what_cannot_be_answered_is_useless() -> None:
    got = scores(qa_row(answerable=False), answered((RIGHT, (0,))))
    assert (got["right_decision"], got["usefulness"], got["cited_supporting"]) == (0, 0, 0)
    assert got["str_em"] == NotApplicable.NOTHING_TO_FIND


def test_a_long_reference_is_compared_by_its_words() -> None:
    row = qa_row(answers=("The moon raises the tides of every sea on the whole earth at Korran.",))
    got = scores(row, answered(("The moon raises the tides.", (0,))))
    assert not checks.is_short(row)
    assert got["usefulness"] == got["reference_recall"] == pytest.approx(3 / 8)
    assert got["answer_in_cited"] == NotApplicable.NO_REFERENCE


def test_the_whole_of_a_suite() -> None:
    found = findings(
        (qa_row("a"), answered((RIGHT, (0,)), score=0.9)),
        (qa_row("b"), declined()),
        (qa_row("c", answerable=False), answered((BREAD, (1,)), score=0.6)),
        (qa_row("d", answerable=False), declined()),
        (qa_row("e"), None),
    )
    assert found.failed == 1
    assert found.matrix is not None
    assert (found.matrix.answerable_answered, found.matrix.answerable_declined) == (1, 1)
    assert (found.matrix.unanswerable_answered, found.matrix.unanswerable_declined) == (1, 1)
    assert value(found, "right_decision") == 0.5
    assert [(point.coverage, point.risk) for point in found.risk_coverage] == [(0.5, 0.0), (1.0, 0.5)]
    assert [each.floor for each in found.floors if each.lost.value == 1] == [0.9]
    assert [(each.confidence, each.accuracy) for each in found.calibration] == [(0.6, 0.0), (0.9, 1.0)]
    assert {each.stage: (each.n, each.p50) for each in found.latency}["total"] == (4, 25.0)
    assert [depth.ndcg.value for depth in found.depths][:2] == [1.0, 1.0]
    assert found.cases[4].error == "deadline_exceeded: late"


def test_confidence_is_the_weakest_claims_and_the_best_passages() -> None:
    assert answering.confidence(answered((RIGHT, (0,)), score=0.5)) == pytest.approx(0.4)


def test_the_listed_pairs_are_all_that_scoring_asks_for() -> None:
    answer = answered((RIGHT, (0, 1)), ("The moon raises the tides.", (0,)))
    table = Table(dict.fromkeys(answering.pairs(answer), True))
    assert scores(qa_row(), answer, table)["citation_recall"] == 1


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        ("It turns every 6 hours.", 1.0),
        ("It turns every 7 hours.", 0.0),
        ("It turns at Korran.", 1.0),
        ("It turns at Dover.", 0.0),
        ("The tide turns.", NotApplicable.NO_STATEMENTS),
    ],
)
def test_numbers_and_names_are_looked_for_in_what_is_cited(claim: str, found: Score) -> None:
    assert TIDES
    assert checks.facts_found(answered((claim, (0,)))) == found
