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

from finetune.classifier.examples import OF_NAMES, Example
from finetune.classifier.fitting import Floats, calibrated, fit, judged
from finetune.classifier.settings import ClassifierSettings
from models.classifier import Head, Judged
from serving.answer.types import Route

Fit = Callable[[Any, Sequence[Example], ClassifierSettings], Any]
Progress = Callable[[str, float], None]
"""Called with each source that was left out, and the share of its rows that were routed right."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The decisions on the real examples, in order, by models that have not seen their source.

    ``heads`` are calibrated on all sources: what the model that has seen everything is served with.
    """

    decisions: tuple[Judged, ...]
    heads: tuple[Head, Head]


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
    judging = np.array([not one.made or one.source in OF_NAMES for one in examples])
    scores = np.zeros((len(examples), 2))
    for source in np.unique(sources[judging]):
        learned = np.flatnonzero(~np.isin(sources, list(family(str(source), settings))))
        model = fitted(features[learned], [examples[row] for row in learned], settings)
        left = np.flatnonzero(judging & (sources == source))
        scores[left] = model.scores(features[left])
        progress(str(source), _share_right([examples[row].route for row in left], scores[left]))
    kept = np.flatnonzero(judging)
    return _decided(scores[kept], [examples[row] for row in kept], settings)


def family(source: str, settings: ClassifierSettings) -> set[str]:
    """The sources that must not be learned from when ``source`` is judged: itself, and those of the same origin."""
    return {source}.union(*(each for each in (*settings.data.together, OF_NAMES) if source in each))


def _decided(scores: Floats, examples: Sequence[Example], settings: ClassifierSettings) -> LeftOut:
    sources = np.array([one.source for one in examples])
    found: dict[int, Judged] = {}
    for source in np.unique(sources):
        others = np.flatnonzero(sources != source)
        heads = calibrated(scores[others], [examples[row] for row in others], settings)
        left = np.flatnonzero(sources == source)
        found.update(zip(left.tolist(), judged(scores[left], heads), strict=True))
    decisions = tuple(found[row] for row, one in enumerate(examples) if not one.made)
    return LeftOut(decisions, calibrated(scores, examples, settings))


def _share_right(routes: Sequence[Route], scores: Floats) -> float:
    """At even odds: thresholds are chosen when all sources have been judged."""
    asked = np.where(scores[:, 1] > 0, Route.AGENTIC.value, Route.SINGLE_PASS.value)
    chosen = np.where(scores[:, 0] > 0, Route.SEARCH.value, asked)
    return float(np.mean([route.value == one for route, one in zip(routes, chosen, strict=True)]))
