"""What a job's weights do on held-out cases, and whether one set of weights does better than another.

A job judges weights: it runs them, as the product would, on cases that nothing was trained on, and returns a
:class:`Judgement`. Two judgements of the same cases are compared by paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finetune.errors import JobError
from serving.evaluation.estimates import Difference, Estimate, Statistic, estimate, paired

SEED = 7


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of held-out cases. ``statistic`` takes positions in ``cases`` (with repeats); NaN: not defined.

    ``target`` is what it must reach (``at_most``: must not pass); without one it is only reported. ``surely`` asks that
    of the interval's end and not of the value: for differences to a reference, where 0 must be excluded.
    """

    name: str
    cases: tuple[str, ...]
    statistic: Statistic
    target: float | None = None
    at_most: bool = False
    surely: bool = False

    def estimate(self) -> Estimate:
        return estimate(len(self.cases), self.statistic, np.random.default_rng(SEED))

    def bar(self) -> dict[str, Any]:
        """The measure as ``metrics.json`` has it: ``name``, ``value``, ``n``, ``ci95``, and ``target``, ``ok``."""
        found = self.estimate()
        ends = None if found.low is None or found.high is None else [_short(found.low), _short(found.high)]
        bar: dict[str, Any] = {"name": self.name, "value": _short(found.value), "n": found.n, "ci95": ends}
        if self.target is None:
            return bar
        worst = found.high if self.at_most else found.low
        judged = worst if self.surely else found.value
        ok = judged is not None and (judged <= self.target if self.at_most else judged >= self.target)
        return {**bar, "target": self.target, "ok": ok}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was measured of one set of weights. ``decides`` names the measure that a release must better.

    ``reported`` holds plain figures that go into ``metrics.json`` beside the measures: sizes, times, thresholds.
    """

    measures: Sequence[Measure]
    decides: str
    reported: dict[str, Any] = field(default_factory=dict)

    @property
    def deciding(self) -> Measure:
        return next(measure for measure in self.measures if measure.name == self.decides)

    def metrics(self) -> dict[str, Any]:
        """The content of ``metrics.json``: bars first, what is only reported after them."""
        found = [measure.bar() for measure in self.measures]
        bars = [bar for bar in found if "target" in bar]
        return {"bars": bars, "measured": [bar for bar in found if "target" not in bar], **self.reported}


def better(ours: Judgement, theirs: Judgement) -> Difference:
    """How much better ``ours`` is in the deciding measure: above 0 is better, whichever way the measure runs.

    Raises :class:`JobError` when the two were not judged on the same cases.
    """
    mine, other = ours.deciding, theirs.deciding
    if (mine.name, mine.cases) != (other.name, other.cases):
        raise JobError(f"{mine.name} was measured on other cases than {other.name}: judge both on the same data")
    sign = -1.0 if mine.at_most else 1.0
    return paired(
        len(mine.cases),
        lambda rows: sign * mine.statistic(rows),
        lambda rows: sign * other.statistic(rows),
        np.random.default_rng(SEED),
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
