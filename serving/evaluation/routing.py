"""How a router does: who is taken for what, macro-F1, and what its errors cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serving.evaluation.estimates import Estimate, Indices, NotApplicable, Statistic, estimate, mean


@dataclass(frozen=True, slots=True)
class Confusion:
    """``counts[i][j]``: cases of class ``labels[i]`` that were taken for ``labels[j]``. ``unlabelled`` are apart."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    unlabelled: int = 0


@dataclass(frozen=True, slots=True)
class Routed:
    """One query: the route it should take (None when nobody said) and the one it took."""

    expected: str | None
    chosen: str


Costs = Mapping[tuple[str, str], float]
"""What taking the first for the second costs. Right choices cost nothing unless it says so."""


def confusion(cases: Sequence[Routed], labels: Sequence[str]) -> Confusion:
    table = _table(_encode(cases, labels), np.arange(_labelled(cases)), len(labels))
    return Confusion(tuple(labels), tuple(map(tuple, table.tolist())), len(cases) - _labelled(cases))


def accuracy(cases: Sequence[Routed], rng: np.random.Generator) -> Estimate:
    return mean(
        [NotApplicable.NO_LABEL if case.expected is None else float(case.expected == case.chosen) for case in cases],
        rng,
    )


def macro_f1(cases: Sequence[Routed], labels: Sequence[str], rng: np.random.Generator) -> Estimate:
    """The mean F1 of the classes that occur, expected or chosen. A class that is never right has an F1 of 0."""
    return estimate(_labelled(cases), macro_f1_statistic(cases, labels), rng, not_applicable=_unlabelled(cases))


def macro_f1_statistic(cases: Sequence[Routed], labels: Sequence[str]) -> Statistic:
    """:func:`macro_f1` of the labelled cases at any positions among them."""
    encoded = _encode(cases, labels)

    def statistic(drawn: Indices) -> float:
        table = _table(encoded, drawn, len(labels))
        occurring = table.sum(axis=0) + table.sum(axis=1)
        present = occurring > 0
        return float((2 * table.diagonal()[present] / occurring[present]).mean())

    return statistic


def expected_cost(cases: Sequence[Routed], costs: Costs, rng: np.random.Generator) -> Estimate:
    """The mean cost of a choice. Raises ``KeyError`` for a wrong choice that ``costs`` does not price."""
    return mean(
        [
            NotApplicable.NO_LABEL if case.expected is None else _cost(case.expected, case.chosen, costs)
            for case in cases
        ],
        rng,
    )


def _cost(expected: str, chosen: str, costs: Costs) -> float:
    if expected == chosen:
        return costs.get((expected, chosen), 0.0)
    return costs[expected, chosen]


def _labelled(cases: Sequence[Routed]) -> int:
    return sum(case.expected is not None for case in cases)


def _unlabelled(cases: Sequence[Routed]) -> dict[str, int]:
    count = len(cases) - _labelled(cases)
    return {NotApplicable.NO_LABEL.value: count} if count else {}


def _encode(cases: Sequence[Routed], labels: Sequence[str]) -> Indices:
    number = {label: index for index, label in enumerate(labels)}
    try:
        codes = [
            number[case.expected] * len(labels) + number[case.chosen] for case in cases if case.expected is not None
        ]
    except KeyError as missing:
        raise ValueError(f"{missing} is no label of {list(labels)}; add it to the labels") from None
    return np.array(codes, dtype=np.int64)


def _table(encoded: Indices, drawn: Indices, labels: int) -> NDArray[np.int64]:
    return np.bincount(encoded[drawn], minlength=labels * labels).reshape(labels, labels)
