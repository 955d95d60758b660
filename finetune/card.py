"""The model card of a run: what it is, what it was made from, by which command, and what it does on held-out cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from finetune.settings import JobSettings

NOT_STATED = "not stated"


def card(
    job: str,
    purpose: str,
    *,
    settings: JobSettings,
    command: str,
    data: Mapping[str, Mapping[str, Any]],
    weights: str,
    metrics: Mapping[str, Any] | None,
) -> str:
    """Markdown. ``data`` describes each input by its reference; ``metrics`` is what ``metrics.json`` holds."""
    head = {"base_model": settings.base, "library_name": "openindex-answer", "tags": [job]}
    parts = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---",
        f"# {job}\n\n{purpose}",
        f"Trained on `{settings.base}`; weights `{weights}`.",
        f"## Command\n\n    {command}\n\nFOLDER is the folder that the data's names are relative to.",
        "## Data\n\n" + "\n".join(_data_table(data, settings.licences)),
        "## What it does on held-out cases\n\n" + "\n".join(_metrics_table(metrics)),
        f"## Settings\n\n```yaml\n{_settings(settings)}```",
    ]
    return "\n\n".join(parts) + "\n"


def _data_table(data: Mapping[str, Mapping[str, Any]], licences: Mapping[str, str]) -> Iterator[str]:
    yield "| data | rows | left out | SHA-256 | licence |"
    yield "|---|---:|---:|---|---|"
    for reference, described in sorted(data.items()):
        licence = licences.get(reference, NOT_STATED)
        sha256 = str(described["sha256"])[:12]
        yield f"| {reference} | {described['rows']:,} | {described['left_out']:,} | `{sha256}` | {licence} |"


def _metrics_table(metrics: Mapping[str, Any] | None) -> Iterator[str]:
    if metrics is None:
        yield "Not judged: the settings name no held-out data."
        return
    yield "| measure | value | 95 % interval | n | target | |"
    yield "|---|---:|---|---:|---|---|"
    for bar in (*metrics["bars"], *metrics["measured"]):
        ends = f"{bar['ci95'][0]:.3g} to {bar['ci95'][1]:.3g}" if bar["ci95"] else ""
        value = "none" if bar["value"] is None else f"{bar['value']:.3g}"
        target, verdict = (
            (f"{bar['target']:g}", "holds" if bar["ok"] else "**falls short**") if "target" in bar else ("", "")
        )
        yield f"| {bar['name']} | {value} | {ends} | {bar['n']:,} | {target} | {verdict} |"


def _settings(settings: JobSettings) -> str:
    """Without what says where it ran and what the tables above say."""
    aside = {"data_root", "licences", "threads", "cluster", "log_steps", "base"}
    dumped: str = yaml.safe_dump(settings.model_dump(mode="json", exclude=aside), sort_keys=False)
    return dumped
