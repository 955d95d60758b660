"""One source left out at a time: what a model makes of queries that come from nowhere it has seen.

A classifier learns a data set's style: capitals, lengths, turns of phrase. So each source's queries are judged by a
model that has learned from all other sources, and whose calibration and threshold come from those sources alone. (The
scores of those come from models that may have seen the source; three numbers are all they give away.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finetune.classifier.examples import Example
from finetune.classifier.fitting import Floats, calibrated, fit, judged
from finetune.classifier.settings import ClassifierSettings
from models.classifier import Head, Judged
from serving.answer.types import Route

Fit = Callable[[Any, Sequence[Example], ClassifierSettings], Any]
Progress = Callable[[str, float], None]
"""Called with each source that was left out, and the share of its rows that were routed right."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Of the real examples, in order: the scores of models that have not seen their source, and the decisions."""

    scores: Floats
    decisions: tuple[Judged, ...]
    heads: tuple[Head, Head]
    """Calibrated on all of ``scores``: what the model that has seen everything is served with."""


def leave_out(
    features: Any,
    examples: Sequence[Example],
    settings: ClassifierSettings,
    *,
    progress: Progress = lambda *_: None,
    fitted: Fit = fit,
) -> LeftOut:
    """``examples`` are the real ones first, then those that code wrote; ``features`` has a row for each."""
    sources = np.array([one.source for one in examples])
    real = np.array([not one.made for one in examples])
    count = int(real.sum())
    scores = np.zeros((count, 2))
    for source in np.unique(sources[real]):
        learned = np.flatnonzero(~np.isin(sources, list(family(str(source), settings))))
        model = fitted(features[learned], [examples[row] for row in learned], settings)
        left = np.flatnonzero(real & (sources == source))
        scores[left] = model.scores(features[left])
        right = (scores[left, 0] > 0, (scores[left, 0] <= 0) & (scores[left, 1] > 0))
        progress(str(source), _share_right([examples[row].route for row in left], *right))
    return LeftOut(scores, *_decided(scores, examples[:count], settings))


def family(source: str, settings: ClassifierSettings) -> set[str]:
    """The sources that must not be learned from when ``source`` is judged: itself, and those of the same origin."""
    return {source}.union(*(each for each in settings.data.together if source in each))


def _decided(
    scores: Floats, examples: Sequence[Example], settings: ClassifierSettings
) -> tuple[tuple[Judged, ...], tuple[Head, Head]]:
    sources = np.array([one.source for one in examples])
    found: list[Judged | None] = [None] * len(examples)
    for source in np.unique(sources):
        others = np.flatnonzero(sources != source)
        heads = calibrated(scores[others], [examples[row] for row in others], settings)
        left = np.flatnonzero(sources == source)
        for row, decision in zip(left, judged(scores[left], heads), strict=True):
            found[row] = decision
    return tuple(one for one in found if one is not None), calibrated(scores, examples, settings)


def _share_right(routes: Sequence[Route], search: Any, agentic: Any) -> float:
    chosen = np.where(search, Route.SEARCH.value, np.where(agentic, Route.AGENTIC.value, Route.SINGLE_PASS.value))
    return float(np.mean([route.value == one for route, one in zip(routes, chosen, strict=True)]))
