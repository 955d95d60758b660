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

from finetune.classifier.examples import Example
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
    found = sparse.csr_matrix((values, index.copy(), pointers.copy()), shape=shape)
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
    asks = routes != Route.SEARCH.value
    search = _head(features.search, ~asks, sources, settings)
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
    """The heads, without bias (it is in the scores), from scores by models that have not seen the rows' sources."""
    goes = np.array([one.route is Route.SEARCH for one in examples])
    labelled = np.array([one.labelled for one in examples])
    agentic = np.array([one.route is Route.AGENTIC for one in examples])
    search = _platt(scores[:, 0], goes)
    asked = labelled & ~goes
    questions = np.sort(_probabilities(search, scores[~goes, 0]))[::-1]
    leaked = int(settings.leak * len(questions))
    threshold = float(questions[min(leaked, len(questions) - 1)]) + 1e-6 if len(questions) else 0.5
    return (
        replace(search, threshold=max(0.5, threshold)),
        replace(_platt(scores[asked, 1], agentic[asked]), threshold=settings.agentic_above),
    )


def _platt(scores: Floats, came_true: Bools) -> Head:
    if len(np.unique(came_true)) < 2:  # nothing to calibrate with
        return Head(bias=0.0)
    model = LogisticRegression(C=1e6).fit(scores[:, None], came_true)
    return Head(bias=0.0, scale=float(model.coef_[0, 0]), offset=float(model.intercept_[0]))


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
