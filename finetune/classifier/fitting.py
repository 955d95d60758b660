"""The fit of the two heads with scikit-learn, their calibration and their thresholds.

Sources are balanced: a class weighs as much as the other, and inside a class a source weighs as the square root of its
size, so that no data set's style decides. Calibration is cross-fitted: the scores it is made of come from models that
have not seen the row's source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier

from finetune.classifier.examples import TOPICS_ALONE, Example
from finetune.classifier.settings import ClassifierSettings
from models.classifier import Head, Judged, decide
from models.ngrams import Grams
from serving.answer.types import Route

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Features:
    """A row an example: for the search head all n-grams, for the agentic head those that are not of characters."""

    search: Any
    agentic: Any

    @classmethod
    def of(cls, texts: Sequence[str], grams: Grams, progress: Callable[[int], None] = lambda _: None) -> Features:
        columns, weights, ends, letters = [], [], [0], []
        for number, text in enumerate(texts, start=1):
            found = grams.hashed(text)
            columns.append(found.buckets.astype(np.int32))
            weights.append(found.weights)
            letters.append(np.arange(len(found.buckets)) >= found.letters)
            ends.append(ends[-1] + len(found.buckets))
            if number % 10_000 == 0:
                progress(number)
        values, rest = np.concatenate(weights), np.concatenate(letters)
        shape = (len(texts), 2**grams.bits)
        index, pointers = np.concatenate(columns), np.array(ends)
        return cls(_summed(values, index, pointers, shape), _summed(values * rest, index, pointers, shape))

    def __getitem__(self, rows: Any) -> Features:
        return Features(self.search[rows], self.agentic[rows])


def _summed(values: Any, index: Any, pointers: Any, shape: tuple[int, int]) -> Any:
    # Summing reorders what it is given, in place.
    found = sparse.csr_matrix((values.copy(), index.copy(), pointers.copy()), shape=shape)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights of both heads, of shape (buckets,), and their biases."""

    weights: tuple[Floats, Floats]
    biases: tuple[float, float]

    def scores(self, features: Features) -> Floats:
        """Shape (rows, 2)."""
        both = zip((features.search, features.agentic), self.weights, self.biases, strict=True)
        return np.stack([matrix @ weights + bias for matrix, weights, bias in both], axis=1)


def fit(features: Features, examples: Sequence[Example], settings: ClassifierSettings) -> Fitted:
    """Learns from all rows: who goes somewhere, and of those who ask, who needs several looks."""
    routes = np.array([one.route.value for one in examples])
    sources = np.array([one.source for one in examples])
    search = _head(features.search, routes == Route.SEARCH.value, sources, settings)
    # A topic without a question says nothing of how many looks a question takes.
    asks = (routes != Route.SEARCH.value) & ~np.isin(sources, TOPICS_ALONE)
    agentic = _head(features.agentic[asks], routes[asks] == Route.AGENTIC.value, sources[asks], settings)
    return Fitted((search[0], agentic[0]), (search[1], agentic[1]))


def _head(matrix: Any, positive: Bools, sources: Any, settings: ClassifierSettings) -> tuple[Floats, float]:
    if len(np.unique(positive)) < 2:  # without the one or the other there is nothing to learn
        return np.zeros(matrix.shape[1]), 1.0 if positive.all() and len(positive) else -1.0
    model = SGDClassifier(
        loss="log_loss",
        alpha=1.0 / (settings.strength * len(positive)),
        max_iter=int(settings.epochs),
        tol=None,
        average=True,
        random_state=settings.seed,
    )
    model.fit(matrix, positive, sample_weight=balanced(positive, sources))
    return np.asarray(model.coef_[0], dtype=np.float64), float(model.intercept_[0])


def balanced(positive: Bools, sources: Any) -> Floats:
    weights = np.ones(len(positive))
    for wanted in (False, True):
        of_class = positive == wanted
        for source in np.unique(sources[of_class]):
            rows = of_class & (sources == source)
            weights[rows] = rows.sum() ** -0.5
        weights[of_class] *= len(positive) / 2 / max(weights[of_class].sum(), 1e-9)
    return weights


def calibrated(scores: Floats, examples: Sequence[Example], settings: ClassifierSettings) -> tuple[Head, Head]:
    """The heads, without bias (it is in the scores), from scores by models that have not seen the rows' sources.

    Only the temperature of the agentic head is fitted. A source that is left out mostly has one label, so what remains
    has more of the other, and an offset fitted to it would lean against the very source that is judged.
    """
    goes = np.array([one.route is Route.SEARCH for one in examples])
    sources = np.array([one.source for one in examples])
    asked = np.array([one.labelled for one in examples]) & ~goes
    agentic = np.array([one.route is Route.AGENTIC for one in examples])
    search = _platt(scores[:, 0], goes, offset=True)
    questions = np.array([not one.made for one in examples]) & ~goes
    return (
        replace(search, threshold=_threshold(_probabilities(search, scores[:, 0]), questions, sources, settings.leak)),
        replace(_platt(scores[asked, 1], agentic[asked], offset=False), threshold=settings.agentic_above),
    )


def _threshold(probabilities: Floats, questions: Bools, sources: Any, leak: float) -> float:
    """The lowest, of at least 0.5, that no source sends more than the share ``leak`` of its questions over."""
    lowest = 0.5
    for source in np.unique(sources[questions]):
        falling = np.sort(probabilities[questions & (sources == source)])[::-1]
        first_kept = float(falling[min(int(leak * len(falling)), len(falling) - 1)])
        lowest = max(lowest, float(np.nextafter(first_kept, 2.0)))
    return lowest


def _platt(scores: Floats, came_true: Bools, *, offset: bool) -> Head:
    if len(np.unique(came_true)) < 2:  # nothing to calibrate with
        return Head(bias=0.0)
    model = LogisticRegression(C=1e6, class_weight="balanced", fit_intercept=offset)
    model.fit(scores[:, None], came_true)
    return Head(bias=0.0, scale=float(model.coef_[0, 0]), offset=float(model.intercept_[0]) if offset else 0.0)


def _probabilities(head: Head, scores: Floats) -> Floats:
    return np.array([head.probability(score) for score in scores])


def judged(scores: Floats, heads: tuple[Head, Head]) -> list[Judged]:
    """What the product would decide by these scores."""
    search, agentic = heads
    return [
        decide(
            search.probability(goes),
            agentic.probability(looks),
            search_above=search.threshold,
            agentic_above=agentic.threshold,
        )
        for goes, looks in scores.tolist()
    ]
