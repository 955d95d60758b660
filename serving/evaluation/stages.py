"""Scores one model stage alone: the verifier on claims, the reranker on passages, the classifier on queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from serving.answer.types import Route
from serving.evaluation import calibration, retrieval, routing, verification
from serving.evaluation.estimates import NotApplicable, Score
from serving.evaluation.findings import DEPTHS, Family, Findings, averages, latencies, metric
from serving.evaluation.records import Checked, Ranked, Sent
from serving.evaluation.report import Case, Depth, ShownPassage
from serving.evaluation.rows import GroundingRow, RerankRow, RouteRow

ROUTES = tuple(route.value for route in Route)

COSTS: routing.Costs = {
    ("search", "single_pass"): 1.0,
    ("search", "agentic"): 2.0,
    ("single_pass", "search"): 4.0,
    ("single_pass", "agentic"): 1.0,
    ("agentic", "search"): 4.0,
    ("agentic", "single_pass"): 2.0,
}
"""A question that gets bare results goes without an answer, which costs most; too much evidence costs compute alone."""

_SHOWN = 5


def grounding(
    rows: Sequence[GroundingRow], checked: Mapping[str, Checked], threshold: float, rng: np.random.Generator
) -> Findings:
    """The gate as it ships: a claim that a guard rejects scores 0, any other what the verifier gives it."""
    done = [(row, record) for row in rows if (record := checked.get(row.id))]
    good = [(row, record) for row, record in done if record.error is None]
    scores = [_gate_score(record) for _, record in good]
    supported = [bool(row.label) for row, _ in good]
    metrics = []
    if good:
        report = verification.report(scores, supported, threshold, rng)
        ece = calibration.calibration_error(scores, supported, rng)
        metrics = [
            metric("balanced_accuracy", "verification", report.balanced_accuracy),
            metric("auroc", "verification", report.auroc),
            metric("precision", "verification", report.precision),
            metric("recall", "verification", report.recall),
            metric("ece", "verification", ece, "lower"),
        ]
    cases = tuple(_claim(row, record, threshold) for row, record in done)
    return Findings(
        metrics=(*metrics, *averages(cases, {"margin": "verification", "right": "verification"}, rng)),
        cases=cases,
        worst_by="margin",
        failed=len(done) - len(good),
        calibration=tuple(calibration.reliability(scores, supported)) if good else (),
        latency=latencies((row.id, {"verify": record.ms}) for row, record in good),
    )


def rerank(rows: Sequence[RerankRow], ranked: Mapping[str, Ranked], rng: np.random.Generator) -> Findings:
    done = [(row, record) for row in rows if (record := ranked.get(row.id))]
    good = [(row, record) for row, record in done if record.error is None]
    judged = {row.id: row.grades() for row, _ in good}
    run = {row.id: {str(place): score for place, score in enumerate(record.scores)} for row, record in good}
    by_name = {
        "ndcg@10": retrieval.by_query(retrieval.ndcg(10), judged, run),
        "mrr@10": retrieval.by_query(retrieval.reciprocal_rank(10), judged, run),
        "recall@5": retrieval.by_query(retrieval.recall(5), judged, run),
        "map": retrieval.by_query(retrieval.average_precision(), judged, run),
    }
    families: dict[str, Family] = dict.fromkeys(by_name, "retrieval")
    cases = tuple(_query(row, record, by_name) for row, record in done)
    return Findings(
        metrics=tuple(averages(cases, families, rng)),
        cases=cases,
        worst_by="ndcg@10",
        failed=len(done) - len(good),
        depths=tuple(Depth(k=k, ndcg=retrieval.average(retrieval.ndcg(k), judged, run, rng)) for k in DEPTHS),
        latency=latencies((row.id, {"rerank": record.ms}) for row, record in good),
    )


def route(rows: Sequence[RouteRow], sent: Mapping[str, Sent], rng: np.random.Generator) -> Findings:
    done = [(row, record) for row in rows if (record := sent.get(row.id))]
    good = [(row, record) for row, record in done if record.route is not None]
    routed = [routing.Routed(row.route, str(record.route)) for row, record in good]
    cases = tuple(_route(row, record) for row, record in done)
    labelled = any(row.route is not None for row, _ in good)
    extra = [
        metric("macro_f1", "routing", routing.macro_f1(routed, ROUTES, rng)),
        metric("expected_cost", "routing", routing.expected_cost(routed, COSTS, rng), "lower"),
    ]
    return Findings(
        metrics=(*averages(cases, {"accuracy": "routing"}, rng), *(extra if labelled else ())),
        cases=cases,
        worst_by="accuracy",
        failed=len(done) - len(good),
        confusion=routing.confusion(routed, ROUTES) if good else None,
        latency=latencies((row.id, {"route": record.ms}) for row, record in good),
    )


def _gate_score(record: Checked) -> float:
    return 0.0 if record.rejected else min(1.0, max(0.0, record.score))


def _claim(row: GroundingRow, record: Checked, threshold: float) -> Case:
    scores: dict[str, Score] = {}
    if record.error is None:
        given = _gate_score(record)
        scores = {
            "margin": given if row.label else 1 - given,
            "right": float((given >= threshold) == bool(row.label)),
        }
    verdict = f"rejected: {record.rejected}" if record.rejected else f"score {record.score:.2f}"
    return Case(
        id=row.id,
        scores=scores,
        question=row.question or "",
        text=row.claim,
        reference=("supported" if row.label else "not supported",),
        outcome=verdict,
        error=record.error,
        passages=(ShownPassage(title="", text=row.document, cited=True, supporting=bool(row.label)),),
    )


def _query(row: RerankRow, record: Ranked, by_name: Mapping[str, Mapping[str, Score]]) -> Case:
    if record.error is not None:
        return Case(id=row.id, scores={}, question=row.query, error=record.error)
    order = sorted(range(len(record.scores)), key=lambda place: -record.scores[place])[:_SHOWN]
    return Case(
        id=row.id,
        scores={name: by_query[row.id] for name, by_query in by_name.items()},
        question=row.query,
        text="; ".join(f"{record.scores[place]:.3f}" for place in order),
        outcome="as ranked",
        passages=tuple(
            ShownPassage(
                title=row.passages[place].title,
                text=row.passages[place].text,
                cited=rank == 0,
                supporting=row.passages[place].relevance > 0,
            )
            for rank, place in enumerate(order)
        ),
    )


def _route(row: RouteRow, record: Sent) -> Case:
    score: Score = NotApplicable.NO_LABEL if row.route is None else float(row.route == record.route)
    return Case(
        id=row.id,
        scores={} if record.error else {"accuracy": score},
        question=row.query,
        text=record.cue,
        reference=(row.route.value,) if row.route else (),
        outcome=record.route.value if record.route else "",
        error=record.error,
    )
