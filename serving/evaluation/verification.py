"""How a verifier does on labelled claims: balanced accuracy, AUROC, and what is true of what it lets pass.

A score at or above the threshold passes, as in the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from serving.evaluation.estimates import Estimate, Floats, Indices, estimate


@dataclass(frozen=True, slots=True)
class Report:
    """All figures at one threshold.

    ``precision`` is the share of passed claims that are supported, ``recall`` the share of supported claims that pass;
    their n is what they are shares of.
    """

    threshold: float
    balanced_accuracy: Estimate
    auroc: Estimate
    precision: Estimate
    recall: Estimate


def report(scores: Sequence[float], supported: Sequence[bool], threshold: float, rng: np.random.Generator) -> Report:
    """Figures of claims with a score each and whether they are supported.

    Balanced accuracy and AUROC have no value when all claims are of one class, precision when none passes.
    """
    given, true = _arrays(scores, supported)
    passed = given >= threshold
    n = len(given)
    return Report(
        threshold,
        balanced_accuracy=estimate(n, lambda drawn: balanced_accuracy(passed[drawn], true[drawn]), rng),
        auroc=estimate(n, lambda drawn: auroc(given[drawn], true[drawn]), rng),
        precision=_subset(passed, true, rng),
        recall=_subset(true, passed, rng),
    )


def balanced_accuracy(passed: NDArray[np.bool_], supported: NDArray[np.bool_]) -> float:
    """The mean of the shares of supported claims passed and of unsupported ones stopped; NaN with one class only."""
    if supported.all() or not supported.any():
        return math.nan
    return float((passed[supported].mean() + (~passed[~supported]).mean()) / 2)


def auroc(scores: Floats, supported: NDArray[np.bool_]) -> float:
    """The chance that a supported claim scores above an unsupported one, ties counting half; NaN with one class."""
    below = np.sort(scores[~supported])
    above = scores[supported]
    if not len(below) or not len(above):
        return math.nan
    beaten = np.searchsorted(below, above, side="left") + np.searchsorted(below, above, side="right")
    return float(beaten.sum() / (2 * len(below) * len(above)))


def _subset(within: NDArray[np.bool_], hit: NDArray[np.bool_], rng: np.random.Generator) -> Estimate:
    """The share of hits among the claims within, a ratio of two counts that both vary with the sample."""

    def share(drawn: Indices) -> float:
        chosen = within[drawn]
        return float(hit[drawn][chosen].mean()) if chosen.any() else math.nan

    return replace(estimate(len(within), share, rng), n=int(within.sum()))


def _arrays(scores: Sequence[float], supported: Sequence[bool]) -> tuple[Floats, NDArray[np.bool_]]:
    given = np.array(scores, dtype=np.float64)
    if len(scores) != len(supported):
        raise ValueError(f"{len(scores)} scores for {len(supported)} labels; give one of each a claim")
    if np.isnan(given).any():
        raise ValueError("a score is not a number; leave claims the verifier failed on out, and count them")
    return given, np.array(supported, dtype=np.bool_)
