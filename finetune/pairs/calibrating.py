"""Calibration of trained heads on development data: scores that are probabilities, and thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from finetune.pairs import cases as held_out
from finetune.pairs import scoring
from finetune.pairs.cases import ClaimCase
from finetune.pairs.scoring import Weights, logits
from finetune.pairs.settings import PairSettings
from finetune.training import say
from models.features import features
from models.head_encoder import calibrated
from models.heads_config import Calibration, HeadsConfig
from serving.answer.quotes import quotable
from serving.answer.types import Passage
from serving.evaluation.estimates import Floats

PRECISION = 0.9
"""Of claims that pass the shipped threshold, on average over the development sets, as far as it can be had."""
LEAST_RECALL = 0.2
KEPT = 0.95
"""Of sentences that stand in their document as they are, the share that the shipped threshold lets pass at least: one
that is stricter refuses what nobody doubts, and is worth no precision."""
QUOTED = 300
"""Sentences that this is seen by."""
LOST = 0.05
"""The share of answering sentences that the relevance judge may reject on dev data; rare words reject a tenth."""
_SENTENCES = 8  # of a document, that one is chosen from
_RIDGE = 1e-5


def calibrate(settings: PairSettings, folder: Path, base: Path) -> None:
    """Writes the calibration of each head into the configuration in ``folder``. What has no cases stays as it is."""
    config = HeadsConfig.read(folder)
    if config is None:
        return
    replace(config, calibration={}).write(folder)
    makers = {"verifier": _verifier, "reranker": _reranker, "relevance": _relevance}
    found: dict[str, Calibration] = {
        task: made for task in settings.tasks if (made := makers[task](settings, folder, base))
    }
    for task, made in found.items():
        say(f"{task}: {made}")
    replace(config, calibration=found).write(folder)


def _verifier(settings: PairSettings, folder: Path, base: Path) -> Calibration | None:
    cases = held_out.claims(settings.held_out.claims_dev, settings)
    if not cases:
        return None
    weights = Weights(settings, folder, base, "verifier")
    given, counted = _read(weights, cases)
    labels = np.array([case.supported for case in cases])
    fitted = fit(given, counted, labels, even([case.of for case in cases], labels))
    passing = _scores(fitted, given, counted) * scoring.guarded(cases)
    threshold = precise([case.of for case in cases], passing, labels)
    return replace(fitted, threshold=keeping(threshold, _scores(fitted, *_read(weights, quoted(cases, QUOTED)))))


def _read(weights: Weights, cases: Sequence[ClaimCase]) -> tuple[Floats, Floats]:
    """What calibration is fitted to: the logit of each case, shape (n,), and its features, shape (n, features)."""
    return logits(weights.claims(cases)), np.array([_counted(case) for case in cases])


def _scores(fitted: Calibration, given: Floats, counted: Floats) -> Floats:
    return np.array([calibrated(logit, fitted, row) for logit, row in zip(given, counted, strict=True)])


def _reranker(settings: PairSettings, folder: Path, base: Path) -> Calibration | None:
    rows = [row for rows in held_out.queries(settings.held_out.ranked_dev, settings).values() for row in rows]
    if not rows:
        return None
    found = Weights(settings, folder, base, "reranker").rankings(rows)
    given = logits(np.array([score for one in found for score in one.values()]))
    labels = np.array([passage.relevance > 0 for row in rows for passage in row.passages])
    return fit(given, np.zeros((len(given), 0)), labels, np.ones(len(given)))


def _relevance(settings: PairSettings, folder: Path, base: Path) -> Calibration | None:
    cases = held_out.questions(settings.held_out.questions_dev, settings)
    if not cases:
        return None
    given = logits(Weights(settings, folder, base, "relevance").questions(cases))
    labels = np.array([case.answerable for case in cases])
    fitted = fit(given, np.zeros((len(given), 0)), labels, np.ones(len(given)))
    scores = np.array([calibrated(logit, fitted, ()) for logit in given])
    return replace(fitted, threshold=round(float(np.quantile(scores[labels], LOST)), 4))


def _counted(case: ClaimCase) -> tuple[float, ...]:
    """The features of the document that word overlap likes best, which is nearly always the one that scores best."""
    return max(features(document, case.claim) for document in case.documents)


def even(sets: Sequence[str], labels: NDArray[np.bool_]) -> Floats:
    """Weights by which each set counts the same, and in it the supported claims as much as the others."""
    named = np.array(sets)
    weights = np.zeros(len(named))
    for name in set(sets):
        for label in (False, True):
            chosen = (named == name) & (labels == label)
            weights[chosen] = 1.0 / max(1, chosen.sum())
    return weights


def fit(given: Floats, counted: Floats, labels: NDArray[np.bool_], weights: Floats) -> Calibration:
    """Weighted logistic regression of the labels on the logits and on features of shape (n, features)."""
    columns = torch.tensor(np.column_stack([given, counted, np.ones(len(given))]))
    target, weight = torch.tensor(labels.astype(np.float64)), torch.tensor(weights / weights.sum())
    found = torch.zeros(columns.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer: Any = torch.optim.LBFGS([found], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        losses = torch.nn.functional.binary_cross_entropy_with_logits(columns @ found, target, reduction="none")
        loss = (losses * weight).sum() + _RIDGE * (found[:-1] ** 2).sum()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        return loss

    optimizer.step(closure)
    scale, *rest = (round(value, 5) for value in found.detach().tolist())
    return Calibration(scale=scale, bias=rest[-1], weights=tuple(rest[:-1]))


def precise(sets: Sequence[str], scores: Floats, labels: NDArray[np.bool_]) -> float:
    """The lowest threshold from 0.5 on whose precision, on average over the sets, is :data:`PRECISION`; the most
    precise one that still passes :data:`LEAST_RECALL` of what is supported where none is.
    """
    best, most = 0.5, 0.0
    for threshold in np.arange(0.5, 0.99, 0.01):
        passed = scores >= threshold
        found = precision(sets, passed, labels)
        if found >= PRECISION:
            return round(float(threshold), 2)
        if found > most and passed[labels].mean() >= LEAST_RECALL:
            best, most = round(float(threshold), 2), found
    return best


def quoted(cases: Sequence[ClaimCase], most: int) -> list[ClaimCase]:
    """Sentences of the cases' documents as claims over these, at most one a document, from all over the cases."""
    documents = sorted({(case.of, document) for case in cases for document in case.documents})
    quotable_in = []
    for of, document in documents:
        sentences = [sentence for _, sentence in quotable([Passage(of, document)], _SENTENCES)]
        if sentences:
            quotable_in.append((of, document, sentences))
    chosen = quotable_in[:: max(1, len(quotable_in) // most)][:most]
    return [
        ClaimCase(f"quoted {at}", of, (document,), sentences[at % len(sentences)], supported=True)
        for at, (of, document, sentences) in enumerate(chosen)
    ]


def keeping(threshold: float, quotations: Floats) -> float:
    """``threshold``, lowered to where :data:`KEPT` of the quotations pass, but not below a half."""
    if not len(quotations):
        return threshold
    most = math.floor(100 * float(np.quantile(quotations, 1 - KEPT, method="lower"))) / 100
    return max(0.5, min(threshold, most))


def precision(sets: Sequence[str], passed: NDArray[np.bool_], labels: NDArray[np.bool_]) -> float:
    """The share of supported claims among those that pass, on average over the sets where any does; NaN for none."""
    named = np.array(sets)
    shares = [labels[chosen].mean() for name in sorted(set(sets)) if (chosen := passed & (named == name)).any()]
    return float(np.mean(shares)) if shares else float("nan")
