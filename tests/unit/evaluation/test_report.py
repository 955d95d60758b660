"""``report.json``: round trip, what it refuses, the worst cases and the comparison of two."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from serving.evaluation import abstention, calibration
from serving.evaluation.estimates import NotApplicable, Score, mean
from serving.evaluation.report import (
    Case,
    Grader,
    Metric,
    Report,
    ReportError,
    SuiteFacts,
    differences,
    dump,
    load,
    quantiles,
)
from serving.evaluation.rows import Format

SUITE = SuiteFacts(name="clapnq", format=Format.QA, sha256="ab", rows=4, chosen=4)


def rng() -> np.random.Generator:
    return np.random.default_rng(2)


def made(scores: dict[str, Score], **changes: Any) -> Report:
    fields: dict[str, Any] = {
        "made_at": datetime(2026, 1, 2, tzinfo=UTC),
        "command": "answer eval qa",
        "suite": SUITE,
        "grader": Grader(name="reference", kind="reference"),
        "seed": 2,
        "metrics": (Metric(name="recall", family="alce", estimate=mean(list(scores.values()), rng())),),
        "cases": tuple(Case(id=case, scores={"recall": score}) for case, score in scores.items()),
    }
    return Report(**{**fields, **changes})


SCORES: dict[str, Score] = {"a": 1.0, "b": NotApplicable.RIGHT_DECLINE, "c": 0.0, "d": 0.5}


def test_a_report_reads_back_as_it_was() -> None:
    graded = [abstention.Graded(0.9, 0), abstention.Graded(0.2, 1)]
    report = made(
        SCORES,
        matrix=abstention.matrix([(True, True)]),
        risk_coverage=tuple(abstention.risk_coverage(graded)),
        floors=tuple(abstention.floor_losses([0.5, 0.9], [0.1], [0.6], rng())),
        calibration=tuple(calibration.reliability([0.9, 0.2], [True, False])),
        latency=(quantiles("total", {"a": 5.0, "b": 15.0}),),
    )
    assert load(dump(report)) == report
    assert json.loads(dump(report))["cases"][1]["scores"] == {"recall": "right_decline"}


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError):
        Case(id="a", scores={"recall": math.nan})


@pytest.mark.parametrize("text", ["", "{}", '{"schema_version": 2}'])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ReportError, match="not a report"):
        load(text)


def test_a_case_stands_once() -> None:
    twice = (Case(id="a", scores={}), Case(id="a", scores={}))
    with pytest.raises(ValidationError, match="'a' does twice"):
        made(SCORES, cases=twice)


def test_the_worst_cases_have_numbers_and_the_worst_stands_first() -> None:
    assert [case.id for case in made(SCORES).worst("recall", 2)] == ["c", "d"]
    lower = Metric(name="recall", family="alce", estimate=mean([1.0], rng()), better="lower")
    assert [case.id for case in made(SCORES, metrics=(lower,)).worst("recall")] == ["a", "d", "c"]


def test_two_reports_are_compared_case_by_case() -> None:
    earlier = made({"a": 0.0, "b": 1.0, "c": 0.0})
    got = differences(made(SCORES), earlier, rng())["recall"]
    assert (got.value, got.n, got.not_applicable, got.ours_alone) == (0.5, 2, 1, 1)


def test_reports_that_do_not_compare_are_refused() -> None:
    ours = made(SCORES)
    with pytest.raises(ReportError, match="different suites"):
        differences(ours, made(SCORES, suite=SUITE.model_copy(update={"sha256": "cd"})), rng())
    with pytest.raises(ReportError, match="different graders"):
        differences(ours, made(SCORES, grader=Grader(name="TRUE", kind="nli")), rng())


def test_quantiles_are_of_the_cases_that_have_times() -> None:
    got = quantiles("verify", {str(n): float(n) for n in range(101)})
    assert (got.n, got.p50, got.p90, got.p99) == (101, 50, 90, 99)
    with pytest.raises(ValueError, match="verify"):
        quantiles("verify", {})
