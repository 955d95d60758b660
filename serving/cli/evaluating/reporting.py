"""From findings to ``report.json``, ``report.html`` and a table on the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from serving.answer.wire import Versions
from serving.cli.evaluating.errors import EvaluationError, RunStoppedError
from serving.evaluation import page, report
from serving.evaluation.estimates import Difference
from serving.evaluation.findings import Findings
from serving.evaluation.report import Grader, Report, SuiteFacts


def assemble(
    findings: Findings, facts: SuiteFacts, grader: Grader | None, versions: Versions, *, command: str, seed: int
) -> Report:
    found = {field.name: getattr(findings, field.name) for field in fields(findings) if field.name != "worst_by"}
    return Report(
        made_at=datetime.now(UTC),
        command=command,
        suite=facts,
        grader=grader,
        versions=versions,
        seed=seed,
        **found,
    )


def read_earlier(path: Path | None) -> Report | None:
    """An earlier ``report.json``, or the one in an earlier run's folder."""
    if path is None:
        return None
    try:
        return report.load((path / "report.json" if path.is_dir() else path).read_bytes())
    except OSError as error:
        raise EvaluationError(
            f"cannot read {path}: {error.strerror}; give an earlier report.json with --against"
        ) from error


def write(made: Report, worst_by: str, earlier: Report | None, out: Path) -> Mapping[str, Difference]:
    """Writes both files, each whole or not at all, and returns what changed since the earlier report."""
    rng = np.random.default_rng(made.seed)
    changed = report.differences(made, earlier, rng) if earlier else {}
    _replace(out / "report.json", report.dump(made))
    _replace(out / "report.html", page.render(made, worst_by, changed))
    return changed


def _replace(path: Path, text: str) -> None:
    beside = path.with_suffix(f"{path.suffix}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise RunStoppedError(f"cannot write {path}: {error.strerror}; finished cases are kept") from error


def show(made: Report, changed: Mapping[str, Difference], console: Console) -> None:
    kin = "; the grader is of the gate model's kin" if made.grader and made.grader.kin else ""
    table = Table(title=f"{made.suite.name}: {made.suite.chosen} rows, {made.failed} failed{kin}", title_justify="left")
    for name in ("figure", "value", "95 % interval", "n", "not applicable", *(["against"] if changed else [])):
        table.add_column(name, justify="left" if name in {"figure", "not applicable"} else "right")
    for metric in made.metrics:
        found = metric.estimate
        interval = "–" if found.low is None or found.high is None else f"{found.low:.3f} – {found.high:.3f}"
        reasons = ", ".join(f"{count} {reason}" for reason, count in found.not_applicable.items())
        cells = [metric.name, "–" if found.value is None else f"{found.value:.3f}", interval, str(found.n), reasons]
        if changed:
            cells.append(_told(changed.get(metric.name)))
        table.add_row(*cells)
    console.print(table)
    if made.matrix:
        counts = made.matrix
        console.print(
            f"answerable: {counts.answerable_answered} answered, {counts.answerable_declined} declined; "
            f"unanswerable: {counts.unanswerable_answered} answered, {counts.unanswerable_declined} declined"
        )
    for stage in made.latency:
        console.print(f"{stage.stage}: p50 {stage.p50:.0f} ms, p90 {stage.p90:.0f} ms (n {stage.n})")


def _told(found: Difference | None) -> str:
    if found is None or found.value is None:
        return ""
    interval = "" if found.low is None or found.high is None else f" ({found.low:+.3f} – {found.high:+.3f})"
    return f"{found.value:+.3f}{interval}"
