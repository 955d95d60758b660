"""Runs and scores one model stage alone: the verifier, the reranker or the router of the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from serving.answer.wire import Versions
from serving.cli.console import Steps
from serving.cli.evaluating import doing
from serving.cli.evaluating.kept import Kept
from serving.cli.evaluating.local import STAGES, LocalProduct
from serving.cli.evaluating.running import run_cases
from serving.deployments.classifier import made_as_set
from serving.evaluation import stages
from serving.evaluation.findings import Findings
from serving.evaluation.records import Checked, Ranked, Record, Sent
from serving.evaluation.rows import Format
from serving.settings import Settings

STAGE_RECORDS: dict[Format, type[Record]] = {
    Format.GROUNDING: Checked,
    Format.RERANK: Ranked,
    Format.ROUTE: Sent,
}


@dataclass(frozen=True, slots=True)
class Stage:
    settings: Settings
    kind: Format
    steps: Steps
    concurrency: int = 2
    seed: int = 0


async def measure(stage: Stage, rows: list[Any], kept: Kept[Any]) -> tuple[Findings, Versions]:
    """The findings over ``rows``; cases that ``kept`` holds finished are not run again."""
    kind, settings = stage.kind, stage.settings
    async with LocalProduct(settings, STAGES[kind.value], stage.steps) as product:
        names = await product.names()
        cases: dict[str, Any] = await run_cases(
            rows,
            _doer(kind, product),
            STAGE_RECORDS[kind],
            kept,
            concurrency=stage.concurrency,
            steps=stage.steps,
            what=f"{kind} rows",
        )
    known = {name: names[name] for name in ("reranker", "verifier") if name in names}
    versions = Versions(settings=settings.version, router=made_as_set(settings).name, **known)
    rng = np.random.default_rng(stage.seed)
    if kind is Format.GROUNDING:
        return stages.grounding(rows, cases, settings.models.verifier.floor, rng), versions
    if kind is Format.RERANK:
        return stages.rerank(rows, cases, rng), versions
    return stages.route(rows, cases, rng), versions


def _doer(kind: Format, product: LocalProduct) -> Any:
    timeout_s = product.settings.timeout_s
    if kind is Format.GROUNDING:
        return doing.Checker(product.handles["verifier"], timeout_s)
    if kind is Format.RERANK:
        return doing.Ranker(product.handles["reranker"], timeout_s)
    return doing.Sender(made_as_set(product.settings).classifier, timeout_s)
