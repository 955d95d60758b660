"""A small transformer head beside the n-grams: logistic regression on the embeddings of the base, the same examples.

It is judged as the n-grams are, one source left out at a time, and on the given queries alone: what code writes would
take minutes more to embed and is written to teach n-grams.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from finetune.classifier.examples import Example
from finetune.classifier.fitting import Floats, balanced
from finetune.classifier.leaving import LeftOut, leave_out
from finetune.classifier.settings import ClassifierSettings
from finetune.training import say
from models.embedder import Embedder
from serving.answer.types import Route

_AT_ONCE = 1_000
_TIMED = 100


class _EmbeddingHeads:
    """Two logistic regressions, fitted and asked as :class:`finetune.classifier.fitting.Fitted` is."""

    def __init__(self, vectors: NDArray[Any], examples: Sequence[Example], settings: ClassifierSettings) -> None:
        routes = np.array([one.route.value for one in examples])
        sources = np.array([one.source for one in examples])
        asks = routes != Route.SEARCH.value
        self._heads = (
            _fitted(vectors, ~asks, sources, settings),
            _fitted(vectors[asks], routes[asks] == Route.AGENTIC.value, sources[asks], settings),
        )

    def scores(self, vectors: NDArray[Any]) -> Floats:
        return np.stack([head(vectors) for head in self._heads], axis=1)


def _fitted(vectors: NDArray[Any], positive: NDArray[np.bool_], sources: Any, settings: ClassifierSettings) -> Any:
    if len(np.unique(positive)) < 2:
        constant = 1.0 if positive.all() and len(positive) else -1.0
        return lambda rows: np.full(len(rows), constant)
    model = LogisticRegression(C=settings.strength, max_iter=300)
    model.fit(vectors, positive, sample_weight=balanced(positive, sources))
    return model.decision_function


def left_out_of_base(real: Sequence[Example], settings: ClassifierSettings, base: Path) -> tuple[LeftOut, float]:
    """Its judgements of the given queries, and the milliseconds that embedding one takes, alone and on one thread."""
    embedder = Embedder(base, threads=settings.threads or 2)
    texts = [one.text for one in real]
    vectors: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _AT_ONCE):
        vectors.append(embedder.encode(texts[start : start + _AT_ONCE], query=True))
        say(f"{min(len(texts), start + _AT_ONCE)} of {len(texts)} queries embedded")
    found = leave_out(
        np.concatenate(vectors),
        real,
        settings,
        progress=lambda source, right: say(f"base without {source}: {right:.1%} of it routed right"),
        fitted=_EmbeddingHeads,
    )
    return found, _milliseconds(base, texts)


def _milliseconds(base: Path, texts: Sequence[str]) -> float:
    alone = Embedder(base, threads=1)
    spent: list[float] = []
    for text in texts[:: max(1, len(texts) // _TIMED)]:
        began = time.perf_counter()
        alone.encode([text], query=True)
        spent.append((time.perf_counter() - began) * 1e3)
    return float(np.median(spent))
