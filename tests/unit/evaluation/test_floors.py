"""Floors: what falls through one, and how they rise."""

from __future__ import annotations

import pytest

from serving.evaluation import floors
from serving.evaluation.estimates import Estimate
from serving.evaluation.floors import Floors, FloorsError
from serving.evaluation.report import Metric


def measured(value: float | None, low: float | None = None, high: float | None = None) -> list[Metric]:
    return [Metric(name="auroc", family="verification", estimate=Estimate(value, 10, low, high))]


KNOWN = Floors(floors={"grounding/own": {"auroc": 0.8}})


@pytest.mark.parametrize(
    ("metrics", "ok"),
    [
        (measured(0.9, 0.85, 0.95), True),
        (measured(0.75, 0.7, 0.8), True),  # the floor is within the interval
        (measured(0.7, 0.6, 0.79), False),
        (measured(0.7), False),
        (measured(None), False),
    ],
)
def test_a_figure_falls_when_its_whole_interval_lies_below(metrics: list[Metric], ok: bool) -> None:
    assert [each.ok for each in floors.held("grounding/own", metrics, KNOWN)] == [ok]


def test_a_figure_without_a_floor_holds() -> None:
    assert [(each.floor, each.ok) for each in floors.held("grounding/kit", measured(0.1), KNOWN)] == [(None, True)]


def test_a_floor_under_nothing_is_a_fault() -> None:
    with pytest.raises(FloorsError, match="auroc"):
        floors.held("grounding/own", [], KNOWN)


def test_floors_rise_and_never_fall() -> None:
    higher = floors.held("grounding/own", measured(0.91234567), KNOWN)
    assert floors.raised(KNOWN, higher).floors == {"grounding/own": {"auroc": 0.9123}}
    lower = floors.held("grounding/own", measured(0.5), KNOWN)
    assert floors.raised(KNOWN, lower) == KNOWN
    new = floors.held("grounding/kit", measured(0.5), KNOWN)
    assert floors.raised(KNOWN, new).floors["grounding/kit"] == {"auroc": 0.5}


def test_floors_read_back() -> None:
    assert floors.read(floors.dump(KNOWN)) == KNOWN
    with pytest.raises(FloorsError):
        floors.read("{}")
