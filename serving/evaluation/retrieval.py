"""Ranking metrics, as trec_eval defines them: nDCG (linear gain, log2 discount), reciprocal rank, recall, AP.

A run gives scores; ties are broken by document id, descending, as trec_eval does. A judged query that the run lacks
scores 0; a query of the run that nobody judged, or for which nothing is relevant, is not applicable and counted apart
(trec_eval gives the latter 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from serving.evaluation.estimates import Estimate, NotApplicable, Score, mean

Grades = Mapping[str, int]
"""Relevance by document id; what is not in it, or at most 0, is not relevant."""

Metric = Callable[[Sequence[str], Grades], Score]
"""Of a ranking (document ids, best first) and what is relevant."""


def rank(scores: Mapping[str, float]) -> list[str]:
    """Document ids, best first; equal scores by id, descending."""
    return sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)


def ndcg(k: int | None = None) -> Metric:
    def metric(ranking: Sequence[str], grades: Grades) -> Score:
        ideal = _gain(sorted(grades.values(), reverse=True)[:k])
        if ideal == 0:
            return NotApplicable.NOTHING_TO_FIND
        return _gain([grades.get(doc, 0) for doc in ranking[:k]]) / ideal

    return metric


def reciprocal_rank(k: int | None = None, *, at_least: int = 1) -> Metric:
    """1 / the rank of the first relevant document, 0 when there is none among the first k. Its mean is MRR."""

    def metric(ranking: Sequence[str], grades: Grades) -> Score:
        relevant = _relevant(grades, at_least)
        if not relevant:
            return NotApplicable.NOTHING_TO_FIND
        return next((1 / place for place, doc in enumerate(ranking[:k], start=1) if doc in relevant), 0.0)

    return metric


def recall(k: int, *, at_least: int = 1) -> Metric:
    def metric(ranking: Sequence[str], grades: Grades) -> Score:
        relevant = _relevant(grades, at_least)
        if not relevant:
            return NotApplicable.NOTHING_TO_FIND
        return len(relevant.intersection(ranking[:k])) / len(relevant)

    return metric


def average_precision(k: int | None = None, *, at_least: int = 1) -> Metric:
    """The mean, over all relevant documents, of the precision at each one's rank. Its mean is MAP."""

    def metric(ranking: Sequence[str], grades: Grades) -> Score:
        relevant = _relevant(grades, at_least)
        if not relevant:
            return NotApplicable.NOTHING_TO_FIND
        hits = 0
        precisions: list[float] = []
        for place, doc in enumerate(ranking[:k], start=1):
            if doc in relevant:
                hits += 1
                precisions.append(hits / place)
        return math.fsum(precisions) / len(relevant)

    return metric


def by_query(metric: Metric, judged: Mapping[str, Grades], run: Mapping[str, Mapping[str, float]]) -> dict[str, Score]:
    """Each query's score, over the queries that were judged or run."""
    scores: dict[str, Score] = dict.fromkeys(run.keys() - judged.keys(), NotApplicable.NO_LABEL)
    scores |= {query: metric(rank(run.get(query, {})), grades) for query, grades in judged.items()}
    return dict(sorted(scores.items()))


def average(
    metric: Metric,
    judged: Mapping[str, Grades],
    run: Mapping[str, Mapping[str, float]],
    rng: np.random.Generator,
) -> Estimate:
    return mean(list(by_query(metric, judged, run).values()), rng)


def _gain(grades: Sequence[int]) -> float:
    return math.fsum(max(grade, 0) / math.log2(place + 1) for place, grade in enumerate(grades, start=1))


def _relevant(grades: Grades, at_least: int) -> set[str]:
    return {doc for doc, grade in grades.items() if grade >= at_least}
