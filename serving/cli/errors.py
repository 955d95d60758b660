"""``answer errors``: every code that a call can fail with, what it means and what to do."""

from __future__ import annotations

import dataclasses
import json as encoding
import sys
from typing import Annotated

import typer
from rich.console import Console

from serving.answer.codes import CODES, Code
from serving.cli.console import fail


def errors(
    code: Annotated[
        str | None, typer.Argument(help="One code, such as overloaded; all when left out.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Explain the error codes: status, whether to try again, what each means, what to do."""
    chosen = [row for row in CODES if code is None or row.name == code]
    if not chosen:
        fail(f"there is no code {code!r}; `answer errors` lists what there is", code=2)
    if json:
        rows = [dataclasses.asdict(row) for row in chosen]
        sys.stdout.write(encoding.dumps(rows, indent=2, ensure_ascii=False) + "\n")
        return
    console = Console(highlight=False)
    for row in chosen:
        _print(console, row)


def _print(console: Console, row: Code) -> None:
    again = "the same call may succeed later" if row.retryable else "the same call fails again"
    console.print(f"[bold]{row.name}[/bold]  {row.status}, {again}")
    for line in (row.means, row.remedy, f"e.g. {row.example}"):
        console.print(line, markup=False, style="dim" if line.startswith("e.g. ") else None, soft_wrap=True)
    console.print()
