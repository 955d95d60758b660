"""``report.json``: what one evaluation run found, for people, for the regression gate and for later comparison.

Plain numbers only: a metric without a value is null, never NaN. Every case keeps its scores by metric, so that two
reports are compared case by case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from serving.answer.errors import AnswerError
from serving.answer.wire import Timings, Versions
from serving.evaluation.abstention import FloorLoss, Matrix, Point
from serving.evaluation.calibration import Bin
from serving.evaluation.estimates import Difference, Estimate, NotApplicable, Score, compare
from serving.evaluation.routing import Confusion
from serving.evaluation.rows import Format

SCHEMA: Literal[1] = 1


class ReportError(AnswerError):
    """A report cannot be read, or not be compared with another."""

    code = "report_invalid"


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SuiteFacts(Part):
    """What was run: the file by name and hash, rows it has, rows left out as bad, and rows chosen."""

    name: str
    format: Format
    sha256: str
    rows: int
    chosen: int
    bad: tuple[str, ...] = ()


class Grader(Part):
    """Who judged. ``kin``: of the same family as the model that gates answers, which flatters them."""

    name: str
    kind: Literal["nli", "reference"]
    kin: bool = False
    threshold: float | None = None


class Metric(Part):
    """One figure with its n and interval. ``better`` is the direction of improvement."""

    name: str
    family: Literal["alce", "ragas", "abstention", "retrieval", "routing", "verification", "strings", "latency"]
    estimate: Estimate
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""


class Quantiles(Part):
    """Milliseconds of one stage over ``n`` cases."""

    stage: str
    n: int
    p50: float
    p90: float
    p99: float


class Depth(Part):
    """nDCG at a depth."""

    k: int
    ndcg: Estimate


class ShownPassage(Part):
    """A passage as the worst cases show it: whether the answer cites it, and whether the reference rests on it."""

    title: str
    text: str
    cited: bool
    supporting: bool | None = None


class Case(Part):
    """One row's result. ``scores`` hold numbers, or the reason why a metric says nothing of it."""

    id: str
    scores: dict[str, float | NotApplicable]
    question: str = ""
    text: str = ""
    reference: tuple[str, ...] = ()
    outcome: str = ""
    error: str | None = None
    timings_ms: Timings | None = None
    passages: tuple[ShownPassage, ...] = ()


class Report(Part):
    """A whole run. ``failed`` are cases that broke (an incident each), counted apart from declines."""

    schema_version: Literal[1] = SCHEMA
    made_at: datetime
    command: str
    suite: SuiteFacts
    grader: Grader | None = None
    versions: Versions = Versions()
    seed: int
    failed: Annotated[int, Field(ge=0)] = 0
    metrics: tuple[Metric, ...]
    matrix: Matrix | None = None
    risk_coverage: tuple[Point, ...] = ()
    floors: tuple[FloorLoss, ...] = ()
    calibration: tuple[Bin, ...] = ()
    confusion: Confusion | None = None
    depths: tuple[Depth, ...] = ()
    latency: tuple[Quantiles, ...] = ()
    cases: tuple[Case, ...] = ()

    @model_validator(mode="after")
    def _named_once(self) -> Report:
        metrics, cases = [each.name for each in self.metrics], [each.id for each in self.cases]
        for what, names in (("metric", metrics), ("case", cases)):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ValueError(f"each {what} stands in a report once; {twice[0]!r} does twice")
        return self

    def scores(self, metric: str) -> dict[str, Score]:
        """One metric's score of each case that has one, by case id."""
        return {case.id: case.scores[metric] for case in self.cases if metric in case.scores}

    def worst(self, metric: str, count: int = 20) -> tuple[Case, ...]:
        """The cases with the lowest numbers (the highest where lower is better), worst first; ties by id."""
        sign = {each.name: 1 if each.better == "higher" else -1 for each in self.metrics}.get(metric, 1)
        numbers = {case: score for case, score in self.scores(metric).items() if not isinstance(score, NotApplicable)}
        ranked = sorted((case for case in self.cases if case.id in numbers), key=lambda c: (sign * numbers[c.id], c.id))
        return tuple(ranked[:count])


def differences(ours: Report, earlier: Report, rng: np.random.Generator) -> Mapping[str, Difference]:
    """Ours minus the earlier one's, by metric that both scored case by case.

    Raises :class:`ReportError` when the suites differ, or when another grader judged: such figures do not compare.
    """
    if ours.suite.sha256 != earlier.suite.sha256:
        raise ReportError(
            f"the reports are of different suites ({ours.suite.name}, {earlier.suite.name}); run both on one file"
        )
    if ours.grader != earlier.grader:
        raise ReportError("the reports were judged by different graders; run both with one")
    shared = {name for case in ours.cases for name in case.scores} & {n for case in earlier.cases for n in case.scores}
    return {name: compare(ours.scores(name), earlier.scores(name), rng) for name in sorted(shared)}


def quantiles(stage: str, milliseconds: Mapping[str, float]) -> Quantiles:
    """p50, p90 and p99 of a stage's times by case. Raises ``ValueError`` when there is none."""
    if not milliseconds:
        raise ValueError(f"no case has a time for {stage}")
    p50, p90, p99 = np.percentile(list(milliseconds.values()), [50, 90, 99]).tolist()
    return Quantiles(stage=stage, n=len(milliseconds), p50=p50, p90=p90, p99=p99)


def load(text: str | bytes) -> Report:
    """Reads ``report.json``. Raises :class:`ReportError` for anything else."""
    try:
        return Report.model_validate_json(text)
    except ValueError as error:
        raise ReportError(f"not a report of this version ({SCHEMA}): {error}") from error


def dump(report: Report) -> str:
    """``report.json``, indented, ending in a line break."""
    return report.model_dump_json(indent=2) + "\n"
