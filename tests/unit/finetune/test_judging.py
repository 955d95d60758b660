"""Judgements: a bar holds or falls short by its value or by its interval, and two are compared case by case."""

from __future__ import annotations

import numpy as np
import pytest

from finetune.errors import JobError
from finetune.judging import Judgement, Measure, better


def measure(values: list[float], **given: object) -> Measure:
    numbers = np.array(values)
    cases = tuple(str(at) for at in range(len(values)))
    return Measure("share", cases, lambda rows: float(numbers[rows].mean()), **given)  # type: ignore[arg-type]


def judgement(values: list[float], **given: object) -> Judgement:
    return Judgement([measure(values, **given)], decides="share")


@pytest.mark.parametrize(
    ("target", "at_most", "surely", "ok"),
    [
        (0.5, False, False, True),
        (0.6, False, False, False),
        (0.5, True, False, True),
        (0.4, True, False, False),
        (0.49, False, True, False),  # the interval reaches below
        (0.1, False, True, True),
        (0.9, True, True, True),
    ],
)
def test_a_bar_holds_on_its_side(target: float, at_most: bool, surely: bool, ok: bool) -> None:
    bar = measure([0.0, 1.0] * 20, target=target, at_most=at_most, surely=surely).bar()
    assert (bar["value"], bar["n"], bar["target"], bar["ok"]) == (0.5, 40, target, ok)
    low, high = bar["ci95"]
    assert 0.3 < low < 0.5 < high < 0.7


def test_a_bar_that_is_not_defined_falls_short() -> None:
    assert Measure("share", ("a",), lambda _: float("nan"), target=0.0).bar()["ok"] is False


def test_what_has_no_target_is_reported_apart() -> None:
    metrics = Judgement([measure([1.0, 1.0], target=1.0), measure([0.0, 0.0])], "share", {"bytes": 3}).metrics()
    assert [bar["value"] for bar in metrics["bars"]] == [1.0]
    assert [bar["value"] for bar in metrics["measured"]] == [0.0]
    assert metrics["bytes"] == 3


def test_better_is_positive_whichever_way_a_measure_runs() -> None:
    good, bad = [1.0] * 30, [0.0] * 25 + [1.0] * 5
    up = better(judgement(good), judgement(bad))
    down = better(judgement(bad, at_most=True), judgement(good, at_most=True))
    for gain in (up, down):
        assert gain.value == pytest.approx(25 / 30)
        assert gain.low is not None
        assert gain.low > 0
    worse = better(judgement(bad), judgement(good))
    assert worse.high is not None
    assert worse.high < 0


def test_other_cases_are_not_compared() -> None:
    with pytest.raises(JobError, match="same data"):
        better(judgement([1.0, 0.0]), judgement([1.0, 0.0, 1.0]))
