"""The floors that a suite's figures must hold, and what happens when they are raised.

A figure falls through its floor when the floor lies above its whole interval: chance does not explain it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from serving.answer.errors import AnswerError
from serving.evaluation.report import Metric

KEPT = {
    "grounding": ("balanced_accuracy", "auroc"),
    "rerank": ("ndcg@10", "mrr@10"),
    "route": ("accuracy", "macro_f1"),
    "questions": ("right_decision", "str_em"),
}
"""The figures that have floors, by kind of suite: where higher is better."""


class FloorsError(AnswerError):
    """The floors file cannot be read or written."""

    code = "floors_invalid"


class Floors(BaseModel):
    """The least value of each figure, by part (such as ``grounding/own``) and metric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    floors: dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Held:
    """One figure against its floor. ``ok`` also when it has no floor yet, and never when it has no value."""

    part: str
    metric: Metric
    floor: float | None

    @property
    def ok(self) -> bool:
        found = self.metric.estimate
        if self.floor is None:
            return True
        if found.value is None:
            return False
        return self.floor <= (found.high if found.high is not None else found.value)


def read(text: str | bytes) -> Floors:
    try:
        return Floors.model_validate_json(text)
    except ValidationError as error:
        raise FloorsError(f"the floors cannot be read: {error}") from error


def held(part: str, metrics: Sequence[Metric], floors: Floors) -> list[Held]:
    """Each kept figure of a part against its floor. A floor whose figure was not measured is a fault of the suite."""
    kept = KEPT[part.partition("/")[0]]
    by_name = {metric.name: metric for metric in metrics}
    missing = [name for name in floors.floors.get(part, {}) if name not in by_name]
    if missing:
        raise FloorsError(f"{part} has a floor under {missing[0]}, which the suite does not measure: take it out")
    known = floors.floors.get(part, {})
    return [Held(part, by_name[name], known.get(name)) for name in kept if name in by_name]


def raised(floors: Floors, found: Sequence[Held]) -> Floors:
    """The floors with each figure that lies above its floor as its new floor; none is ever lowered."""
    parts: dict[str, dict[str, float]] = {part: dict(known) for part, known in floors.floors.items()}
    for each in found:
        value = each.metric.estimate.value
        if value is not None and (each.floor is None or value > each.floor):
            parts.setdefault(each.part, {})[each.metric.name] = round(value, 4)
    return Floors(floors=_sorted(parts))


def dump(floors: Floors) -> str:
    return floors.model_dump_json(indent=2) + "\n"


def _sorted(parts: Mapping[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {part: dict(sorted(parts[part].items())) for part in sorted(parts)}
