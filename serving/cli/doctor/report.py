"""How findings are printed."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from serving.cli.console import one_line
from serving.cli.doctor.findings import Finding, Status

MARKS = {Status.OK: "ok", Status.WARNING: "warning", Status.PROBLEM: "PROBLEM"}


def worst(findings: Sequence[Finding]) -> Status:
    order = list(Status)
    return max((one.status for one in findings), key=order.index, default=Status.OK)


def as_json(findings: Sequence[Finding]) -> str:
    """One document: ``status`` is the worst of all, ``checks`` are in the order in which they ran."""
    document = {"status": worst(findings), "checks": [asdict(one) for one in findings]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def lines(findings: Sequence[Finding], width: int) -> Iterator[str]:
    """A line for each finding, longer ones indented below it, what mends it after an arrow; then how many there are."""
    names = max((len(one.check) for one in findings), default=0)
    indent = " " * (10 + names + 2)
    for one in findings:
        start = f"{MARKS[one.status]:<10}{one.check:<{names}}  "
        yield from _wrapped(start + one_line(one.message), indent, width)
        if one.fix:
            yield f"{indent}→ {one_line(one.fix)}"  # whole, so that it can be copied
    count = {status: sum(one.status is status for one in findings) for status in Status}
    problems, warnings = count[Status.PROBLEM], count[Status.WARNING]
    yield ""
    yield (
        f"{len(findings)} checks: {problems} problem{'s' * (problems != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    )


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, len(indent) + 20),
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
        drop_whitespace=True,
    )
