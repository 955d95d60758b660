"""What pair encoders do on held-out cases, and how much better that is than what is served without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.errors import JobError
from finetune.home import home
from finetune.judging import Judgement, Measure
from finetune.pairs import cases as held_out
from finetune.pairs import scoring
from finetune.pairs.calibrating import LOST
from finetune.pairs.cases import ClaimCase, QuestionCase
from finetune.pairs.scoring import OVERLAP_THRESHOLD, Weights
from finetune.pairs.settings import PairSettings, Task
from finetune.training import say
from models.catalog import Catalog
from models.heads_config import Calibration, HeadsConfig
from serving.evaluation.estimates import Floats, Indices, Statistic
from serving.evaluation.retrieval import ndcg, rank
from serving.evaluation.rows import RerankRow
from serving.evaluation.verification import balanced_accuracy

EVEN = 0.5
"""The score at which calibrated heads let as many wrong claims pass as they stop right ones."""
EXTRACTIVE = frozenset({"begin", "wice", "wice_chunks", "expertqa", "factcheck_gpt"})
"""Sets of claims that models or people wrote about a text; the others were written or changed to mislead."""

Flags = NDArray[np.bool_]


@dataclass
class _Found:
    """The measures of one task, the one that decides first."""

    measures: list[Measure]
    reported: dict[str, Any] = field(default_factory=dict)


def judge(settings: PairSettings, weights: Path | None, base: Path) -> Judgement:
    """Judges the heads in ``weights`` on the settings' held-out cases; None: what is served without them."""
    judges: dict[str, Callable[[PairSettings, Path | None, Path], _Found]] = {
        "verifier": _verifier,
        "reranker": _reranker,
        "relevance": _relevance,
    }
    found = [judges[task](settings, weights, base) for task in settings.tasks]
    measures = [measure for one in found for measure in one.measures]
    if not measures:
        raise JobError("held_out names no file to judge on: copy that part of configs/finetune/encoder.yaml")
    return Judgement(measures, measures[0].name, {name: value for one in found for name, value in one.reported.items()})


class Claims:
    """Claims of several sets, with statistics that give every set the same weight."""

    def __init__(self, cases: Sequence[ClaimCase]) -> None:
        self.cases = cases
        self.names = tuple(case.name for case in cases)
        self.labels = np.array([case.supported for case in cases])
        self._codes = np.unique([case.of for case in cases], return_inverse=True)[1]

    def of(self, *sets: str) -> Claims:
        return Claims([case for case in self.cases if case.of in sets])

    def macro(self, passed: Flags) -> Statistic:
        """The mean of the sets' balanced accuracies."""

        def statistic(drawn: Indices) -> float:
            right, codes = passed[drawn] == self.labels[drawn], self._codes[drawn]
            supported = self.labels[drawn]
            found = (_shares(codes, supported, right) + _shares(codes, ~supported, right)) / 2
            return _mean_of(found)

        return statistic

    def precision(self, passed: Flags) -> Statistic:
        """The share of supported claims among those that pass, on average over the sets where any does."""
        return lambda drawn: _mean_of(_shares(self._codes[drawn], passed[drawn], self.labels[drawn]))

    def recall(self, passed: Flags) -> Statistic:
        """The share of supported claims that pass, on average over the sets."""
        return lambda drawn: _mean_of(_shares(self._codes[drawn], self.labels[drawn], passed[drawn]))


def _shares(codes: NDArray[np.int64], within: Flags, hit: Flags) -> Floats:
    """For each set the share of hits among the claims within; NaN where there are none."""
    total = np.bincount(codes[within], minlength=int(codes.max()) + 1)
    hits = np.bincount(codes[within & hit], minlength=len(total))
    shares: Floats = np.divide(hits, total, out=np.full(len(total), np.nan), where=total > 0)
    return shares


def _mean_of(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _verifier(settings: PairSettings, weights: Path | None, base: Path) -> _Found:
    held = settings.held_out
    dev, test = (Claims(held_out.claims(files, settings)) for files in (held.claims_dev, held.claims_test))
    if not dev.cases:
        return _Found([])
    judge = None if weights is None else Weights(settings, weights, base, "verifier")
    even, shipped = (OVERLAP_THRESHOLD,) * 2 if judge is None else (EVEN, calibration(weights, "verifier").threshold)
    score = scoring.overlap if judge is None else judge.claims
    measures = [_measure("verifier: macro balanced accuracy, dev", dev, dev.macro(score(dev.cases) >= even))]
    if not test.cases:
        return _Found(measures)
    say(f"{len(test.cases)} held-out claims")
    given = score(test.cases)
    allowed = scoring.guarded(test.cases) > 0
    measures += _against_overlap(test, given >= even, allowed)
    passed = (given >= shipped) & allowed
    measures += [
        _measure("verifier: precision at the shipped threshold", test, test.precision(passed), target=0.9),
        _measure("verifier: recall at the shipped threshold", test, test.recall(passed)),
        _measure("verifier: macro balanced accuracy at the shipped threshold", test, test.macro(passed)),
    ]
    for one in sorted({case.of for case in test.cases}):
        chosen = np.array([case.of == one for case in test.cases])
        part = test.of(one)
        measures.append(_measure(f"verifier: balanced accuracy, {one}", part, part.macro((given >= even)[chosen])))
    return _Found(measures, {"verifier": {"threshold": shipped, **_cost(judge)}})


def _against_overlap(test: Claims, passed: Flags, allowed: Flags) -> list[Measure]:
    words = scoring.overlap(test.cases) >= OVERLAP_THRESHOLD
    found = [
        _measure("verifier: macro balanced accuracy", test, test.macro(passed), target=0.70),
        _measure("overlap: macro balanced accuracy", test, test.macro(words)),
        _measure("guards + verifier: macro balanced accuracy", test, test.macro(passed & allowed)),
        _measure("guards + overlap: macro balanced accuracy", test, test.macro(words & allowed)),
        _better("verifier minus overlap", test, passed, words),
        _better("verifier minus guards + overlap", test, passed, words & allowed),
        _better("guards + verifier minus guards + overlap", test, passed & allowed, words & allowed),
    ]
    sets = {case.of for case in test.cases}
    for kind, chosen in (("extractive", sets & EXTRACTIVE), ("adversarial", sets - EXTRACTIVE)):
        inside = np.array([case.of in chosen for case in test.cases])
        part = test.of(*chosen)
        if part.cases:
            surely = kind == "adversarial"
            name = f"verifier minus overlap, {kind} sets"
            found.append(_better(name, part, passed[inside], words[inside], surely=surely))
    return found


def _better(name: str, claims: Claims, ours: Flags, theirs: Flags, *, surely: bool = True) -> Measure:
    mine, other = claims.macro(ours), claims.macro(theirs)
    return Measure(name, claims.names, lambda drawn: mine(drawn) - other(drawn), target=0.0, surely=surely)


def _measure(name: str, claims: Claims, statistic: Statistic, target: float | None = None) -> Measure:
    return Measure(name, claims.names, statistic, target=target)


def _reranker(settings: PairSettings, weights: Path | None, base: Path) -> _Found:
    held, threads = settings.held_out, settings.threads or 2
    embedder = base if settings.base == held.embedder else Catalog(home()).locate(held.embedder, progress=say)
    dev, test = (held_out.queries(files, settings) for files in (held.ranked_dev, held.ranked_test))
    if not dev:
        return _Found([])
    judge = None if weights is None else Weights(settings, weights, base, "reranker")

    def ranked(rows: Sequence[RerankRow]) -> list[dict[str, float]]:
        return scoring.cosines(rows, embedder, threads) if judge is None else judge.rankings(rows)

    rows = [row for rows in dev.values() for row in rows]
    measures = [_mean("reranker: nDCG@10, dev", rows, gains(rows, ranked(rows)))]
    for name, asked in test.items():
        say(f"{name}: {len(asked)} held-out queries")
        ours = gains(asked, ranked(asked))
        words, vectors = gains(asked, scoring.bm25(asked)), gains(asked, scoring.cosines(asked, embedder, threads))
        measures += [
            _mean(f"reranker: nDCG@10, {name}", asked, ours),
            _mean(f"BM25: nDCG@10, {name}", asked, words),
            _mean(f"bi-encoder: nDCG@10, {name}", asked, vectors),
            _mean(f"reranker minus BM25, {name}", asked, ours - words, target=0.08),
            _mean(f"reranker minus bi-encoder, {name}", asked, ours - vectors, target=0.05),
        ]
    return _Found(measures, {"reranker": _cost(judge)})


def gains(rows: Sequence[RerankRow], scores: Sequence[dict[str, float]]) -> Floats:
    """nDCG@10 of each query, in the order of ``rows``."""
    metric = ndcg(10)
    return np.array([float(metric(rank(given), row.grades())) for row, given in zip(rows, scores, strict=True)])


def _mean(name: str, rows: Sequence[RerankRow], values: Floats, target: float | None = None) -> Measure:
    return Measure(name, tuple(row.id for row in rows), lambda drawn: float(values[drawn].mean()), target=target)


def _relevance(settings: PairSettings, weights: Path | None, base: Path) -> _Found:
    cases = held_out.questions(settings.held_out.questions_dev, settings)
    if not cases:
        return _Found([])
    judge = None if weights is None else Weights(settings, weights, base, "relevance")
    before = scoring.rare_words(cases) > 0
    scores = before.astype(np.float64) if judge is None else judge.questions(cases)
    after = before if judge is None else across(cases, scores)
    answerable = np.array([case.answerable for case in cases])
    names = tuple(case.name for case in cases)

    def apart(drawn: Indices) -> float:
        """The mean of the shares of answerable questions answered and of impossible ones not."""
        return balanced_accuracy(after[drawn], answerable[drawn])

    def fall(drawn: Indices) -> float:
        impossible = ~answerable[drawn]
        answered = before[drawn][impossible].mean()
        return float(1 - after[drawn][impossible].mean() / answered) if answered else float("nan")

    def lost(drawn: Indices) -> float:
        chosen = answerable[drawn]
        return float(before[drawn][chosen].mean() - after[drawn][chosen].mean())

    measures = [
        Measure("relevance: balanced accuracy, dev", names, apart),
        Measure("relevance: fewer impossible questions answered", names, fall, target=1 / 3),
        Measure("relevance: answerable questions lost", names, lost, target=0.03, at_most=True),
    ]
    return _Found(measures, {"relevance": {**_threshold(weights, "relevance"), **_cost(judge)}})


def across(cases: Sequence[QuestionCase], scores: Floats) -> Flags:
    """Whether each sentence passes at a threshold chosen on the passages of the other titles."""
    titles = np.array([case.passage.title for case in cases])
    answerable = np.array([case.answerable for case in cases])
    passed = np.zeros(len(cases), dtype=np.bool_)
    for title in set(titles):
        others = (titles != title) & answerable
        if not others.any():
            raise JobError("held_out.questions_dev needs passages of two titles: a threshold is chosen on the others")
        inside = titles == title
        passed[inside] = scores[inside] >= np.quantile(scores[others], LOST)
    return passed


def calibration(weights: Path | None, task: Task) -> Calibration:
    config = None if weights is None else HeadsConfig.read(weights)
    return Calibration() if config is None else config.calibration.get(task, Calibration())


def _threshold(weights: Path | None, task: Task) -> dict[str, float]:
    return {} if weights is None else {"threshold": calibration(weights, task).threshold}


def _cost(judge: Weights | None) -> dict[str, float]:
    if judge is None or not judge.pairs:
        return {}
    return {"pairs": judge.pairs, "milliseconds_a_pair": round(1000 * judge.seconds / judge.pairs, 2)}
