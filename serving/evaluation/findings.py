"""What a suite's records amount to: the parts of a report that depend on the kind of suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from serving.evaluation.abstention import FloorLoss, Matrix, Point
from serving.evaluation.calibration import Bin
from serving.evaluation.estimates import Estimate, Score, mean
from serving.evaluation.report import Case, Depth, Metric, Quantiles, quantiles
from serving.evaluation.routing import Confusion

Family = Literal["alce", "ragas", "abstention", "retrieval", "routing", "verification", "strings", "latency"]
Better = Literal["higher", "lower"]

DEPTHS = (1, 3, 5, 10, 20)


@dataclass(frozen=True, slots=True)
class Findings:
    """``worst_by`` is the metric by which the worst cases are chosen."""

    metrics: tuple[Metric, ...]
    cases: tuple[Case, ...]
    worst_by: str
    failed: int = 0
    matrix: Matrix | None = None
    risk_coverage: tuple[Point, ...] = ()
    floors: tuple[FloorLoss, ...] = ()
    calibration: tuple[Bin, ...] = ()
    confusion: Confusion | None = None
    depths: tuple[Depth, ...] = ()
    latency: tuple[Quantiles, ...] = ()


def metric(name: str, family: Family, estimate: Estimate, better: Better = "higher") -> Metric:
    return Metric(name=name, family=family, estimate=estimate, better=better)


def averages(cases: Sequence[Case], families: Mapping[str, Family], rng: np.random.Generator) -> list[Metric]:
    """The mean of each metric that some case has a score or a reason for, in the order of ``families``."""
    found: dict[str, list[Score]] = {}
    for case in cases:
        for name, score in case.scores.items():
            found.setdefault(name, []).append(score)
    return [metric(name, family, mean(found[name], rng)) for name, family in families.items() if name in found]


def latencies(times: Iterable[tuple[str, Mapping[str, float]]]) -> tuple[Quantiles, ...]:
    """Quantiles of each stage that took any time, from (case, milliseconds by stage)."""
    by_stage: dict[str, dict[str, float]] = {}
    for case, stages in times:
        for stage, milliseconds in stages.items():
            by_stage.setdefault(stage, {})[case] = milliseconds
    return tuple(quantiles(stage, spent) for stage, spent in by_stage.items() if any(spent.values()))
