"""The findings of one stage alone, over records made to known rates."""

from __future__ import annotations

import numpy as np

from serving.answer.types import Route
from serving.evaluation import stages
from serving.evaluation.findings import Findings
from serving.evaluation.records import Checked, Ranked, Sent
from serving.evaluation.rows import GroundingRow, RerankPassage, RerankRow, RouteRow


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def value(found: Findings, name: str) -> float | None:
    return next(metric.estimate.value for metric in found.metrics if metric.name == name)


def claim(name: str, label: int) -> GroundingRow:
    return GroundingRow.model_validate({"id": name, "document": "d", "claim": "c", "label": label})


def test_a_claim_that_a_guard_rejects_scores_nothing() -> None:
    rows = [claim("a", 1), claim("b", 0), claim("c", 0), claim("d", 1)]
    checked = {
        "a": Checked(id="a", score=0.9),
        "b": Checked(id="b", score=0.95, rejected="number_mismatch"),
        "c": Checked(id="c", score=0.9),
        "d": Checked(id="d", error="unavailable: gone"),
    }
    found = stages.grounding(rows, checked, 0.85, rng())
    assert value(found, "balanced_accuracy") == 0.75
    assert value(found, "precision") == 0.5
    assert found.failed == 1
    assert {case.id: case.scores.get("margin") for case in found.cases} == {"a": 0.9, "b": 1.0, "c": 1 - 0.9, "d": None}
    assert found.cases[1].outcome == "rejected: number_mismatch"


def test_rankings_are_scored_by_place() -> None:
    passages = tuple(RerankPassage(text=f"t{n}", relevance=int(n == 1)) for n in range(3))
    rows = [RerankRow(id="a", query="q", passages=passages), RerankRow(id="b", query="q", passages=passages)]
    ranked = {"a": Ranked(id="a", scores=(0.1, 0.9, 0.2)), "b": Ranked(id="b", scores=(0.5, 0.4, 0.1))}
    found = stages.rerank(rows, ranked, rng())
    assert value(found, "mrr@10") == 0.75
    assert found.depths[0].ndcg.value == 0.5
    assert found.cases[1].passages[0].text == "t0"


def test_routes_are_counted_and_priced() -> None:
    rows = [
        RouteRow(id="a", query="x", route=Route.SEARCH),
        RouteRow(id="b", query="y", route=Route.AGENTIC),
        RouteRow(id="c", query="z", route=None),
    ]
    sent = {name: Sent(id=name, route=Route.SEARCH, cue="rule") for name in "abc"}
    found = stages.route(rows, sent, rng())
    assert value(found, "accuracy") == 0.5
    assert value(found, "expected_cost") == 2.0
    assert found.confusion is not None
    assert found.confusion.unlabelled == 1


def test_unlabelled_routes_have_no_figures_and_no_error() -> None:
    rows = [RouteRow(id="a", query="x", route=None)]
    found = stages.route(rows, {"a": Sent(id="a", route=Route.SEARCH)}, rng())
    assert [metric.estimate.value for metric in found.metrics] == [None]
