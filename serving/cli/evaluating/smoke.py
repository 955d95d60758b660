"""The regression gate: a small fixed suite of each model stage, and six questions to a server where one is named.

Rows of our own lie beside :mod:`serving.evaluation`; where ``ANSWER_EVAL_DATA`` points to the shared kit, 200 of its
rows for each stage as well. A figure whose whole interval lies below its floor fails the gate.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import serving.evaluation
from serving.cli.console import Steps
from serving.cli.evaluating.doing import ServerAsker
from serving.cli.evaluating.errors import EvaluationError
from serving.cli.evaluating.kept import Kept
from serving.cli.evaluating.locating import DATA, LABELS
from serving.cli.evaluating.running import run_cases
from serving.cli.evaluating.stage import Stage, measure
from serving.evaluation import answering, floors, suites
from serving.evaluation.floors import Floors, Held
from serving.evaluation.records import Asked
from serving.evaluation.rows import Format
from serving.evaluation.sampling import balanced
from serving.settings import Settings

OWN = Path(str(serving.evaluation.__file__)).parent / "smoke"
FLOORS = OWN / "floors.json"
KIT_ROWS = 200
SEED = 20
TIMEOUT_S = 120.0

KIT = {
    Format.GROUNDING: (
        "grounding/factcg.dev.jsonl.gz",
        "grounding/fever_symmetric.dev.jsonl.gz",
        "grounding/factcheck_gpt.dev.jsonl.gz",
        "grounding/expertqa.dev.jsonl.gz",
    ),
    Format.RERANK: ("rerank/selqa.dev.jsonl.gz",),
    Format.ROUTE: (
        "route/bangs.jsonl.gz",
        "route/nq_open_oracle.jsonl.gz",
        "route/selfaware.jsonl.gz",
        "route/hotpotqa.jsonl.gz",
        "route/strategyqa.jsonl.gz",
    ),
}
_READERS: dict[Format, Any] = {
    Format.GROUNDING: suites.read_grounding,
    Format.RERANK: suites.read_rerank,
    Format.ROUTE: suites.read_route,
}


def run_smoke(
    settings: Settings,
    url: str | None,
    steps: Steps,
    console: Console,
    *,
    floors: Path | None = None,
    raise_floors: bool = False,
) -> bool:
    """Measures, shows, and says whether every floor held. Raising writes the floors file and never lowers one."""
    path = floors or FLOORS
    known = read_floors(path)
    found = asyncio.run(measure_stages(settings, known, steps))
    if url is not None:
        found += asyncio.run(measure_questions(url, known, steps))
    _show(found, console)
    if raise_floors:
        _write(path, found, known)
        steps.say(f"floors raised in {path}")
    return all(each.ok for each in found)


async def measure_stages(settings: Settings, known: Floors, steps: Steps) -> list[Held]:
    """Each stage over our own rows and over the kit's, where it is."""
    found: list[Held] = []
    stage = Stage(settings, Format.GROUNDING, steps, seed=SEED)
    for part, kind, rows in _parts(steps):
        findings, _ = await measure(replace(stage, kind=kind), rows, Kept())
        found += _held(part, findings, known)
    return found


async def measure_questions(url: str, known: Floors, steps: Steps) -> list[Held]:
    """The six questions, asked of a server that answers from the default index."""
    rows = list(suites.read_qa(OWN / "questions.jsonl").rows)
    asker = ServerAsker(url, TIMEOUT_S)
    kept: Kept[Asked] = Kept()
    asked = await run_cases(rows, asker, Asked, kept, concurrency=1, steps=steps, what="questions")
    return _held("questions/own", answering.score(rows, asked, None, np.random.default_rng(SEED)), known)


def read_floors(path: Path = FLOORS) -> Floors:
    try:
        return floors.read(path.read_bytes())
    except OSError as error:
        raise EvaluationError(f"cannot read {path}: {error.strerror}; name the floors with --floors") from error


def _held(part: str, findings: Any, known: Floors) -> list[Held]:
    if findings.failed:
        broken = next(case.error for case in findings.cases if case.error)
        raise EvaluationError(f"{part}: {findings.failed} cases broke, one with {broken}")
    return floors.held(part, findings.metrics, known)


def _parts(steps: Steps) -> Iterator[tuple[str, Format, list[Any]]]:
    root = os.environ.get(DATA)
    for kind, names in KIT.items():
        yield f"{kind}/own", kind, list(_READERS[kind](OWN / f"{kind}.jsonl").rows)
        paths = [Path(root) / name for name in names] if root else []
        if paths and all(path.is_file() for path in paths):
            rows = [row for path in paths for row in _READERS[kind](path).rows]
            yield f"{kind}/kit", kind, balanced(rows, LABELS[kind], KIT_ROWS, SEED)
        else:
            steps.say(f"{kind}: {DATA} does not point to the kit, so our own rows alone")


def _write(path: Path, found: list[Held], known: Floors) -> None:
    try:
        path.write_text(floors.dump(floors.raised(known, found)), encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"cannot write {path}: {error.strerror}; name another file with --floors") from error


def _show(found: list[Held], console: Console) -> None:
    table = Table(title="smoke", title_justify="left")
    for name in ("part", "figure", "value", "95 % interval", "n", "floor", ""):
        table.add_column(name, justify="left" if name in {"part", "figure"} else "right")
    for each in found:
        got = each.metric.estimate
        table.add_row(
            each.part,
            each.metric.name,
            "–" if got.value is None else f"{got.value:.3f}",
            "–" if got.low is None or got.high is None else f"{got.low:.3f} – {got.high:.3f}",
            str(got.n),
            "none" if each.floor is None else f"{each.floor:.3f}",
            "ok" if each.ok else "BELOW",
        )
    console.print(table)
