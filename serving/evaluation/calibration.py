"""Is a stated probability what happens: reliability bins and the expected calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serving.evaluation.estimates import Estimate, Floats, Indices, Statistic, estimate

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases whose confidence lies in [low, high): how many, their mean confidence and the share that came true."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


def reliability(confidences: Sequence[float], came_true: Sequence[bool], bins: int = BINS) -> list[Bin]:
    """Equal-width bins over [0, 1], empty ones left out. A confidence of exactly 1 falls in the last."""
    sure, true = _arrays(confidences, came_true)
    placed = _bin(sure, bins)
    return [
        Bin(
            low=index / bins,
            high=(index + 1) / bins,
            n=int((placed == index).sum()),
            confidence=float(sure[placed == index].mean()),
            accuracy=float(true[placed == index].mean()),
        )
        for index in np.unique(placed).tolist()
    ]


def calibration_error(
    confidences: Sequence[float], came_true: Sequence[bool], rng: np.random.Generator, *, bins: int = BINS
) -> Estimate:
    """ECE: the gap between confidence and accuracy in each bin, weighted by how many cases it holds.

    The bootstrap of an ECE leans upwards on few cases: smaller samples look worse calibrated than they are.
    """
    return estimate(len(confidences), error_statistic(confidences, came_true, bins=bins), rng)


def error_statistic(confidences: Sequence[float], came_true: Sequence[bool], *, bins: int = BINS) -> Statistic:
    """The ECE of the cases at any positions."""
    sure, true = _arrays(confidences, came_true)
    placed = _bin(sure, bins)

    def error(drawn: Indices) -> float:
        gaps = np.bincount(placed[drawn], weights=true[drawn] - sure[drawn], minlength=bins)
        return float(np.abs(gaps).sum() / len(drawn))

    return error


def _arrays(confidences: Sequence[float], came_true: Sequence[bool]) -> tuple[Floats, Floats]:
    sure = np.array(confidences, dtype=np.float64)
    if len(confidences) != len(came_true):
        raise ValueError(f"{len(confidences)} confidences for {len(came_true)} outcomes; give one of each a case")
    if not ((sure >= 0) & (sure <= 1)).all():
        raise ValueError("a confidence lies in [0, 1]; turn scores into probabilities first")
    return sure, np.array(came_true, dtype=np.float64)


def _bin(confidences: Floats, bins: int) -> Indices:
    return np.minimum((confidences * bins).astype(np.int64), bins - 1)
