"""An Answer for people: text with coloured markers and a numbered source list; plain when piped."""

from __future__ import annotations

import re

from rich.console import Console
from rich.text import Text

from serving.answer.types import Outcome
from serving.answer.wire import Answer, PassageOut
from serving.cli.console import one_line, printable

_MARKERS = re.compile(r" ?(?:\[\d+\])+")


def render(answer: Answer, console: Console) -> None:
    """Prints the answer. What passages say is printed literally: never as console markup, never as escape codes."""
    if answer.outcome is Outcome.SEARCH:
        for number, passage in enumerate(answer.passages, start=1):
            print_passage(console, number, passage, excerpt=True)
        if not answer.passages:
            console.print(Text("Nothing found."))
        return
    if answer.decline:
        console.print(Text(printable(answer.decline.message), style="yellow"))
        if answer.passages:
            console.print(Text("\nFound, without an answer:", style="dim"))
            for number, passage in enumerate(answer.passages[:3], start=1):
                print_passage(console, number, passage)
        return
    console.print(marked(answer.marked_text), soft_wrap=not console.is_terminal)  # what reads a pipe has no width
    render_sources(answer, console)


def marked(text: str) -> Text:
    """A text with its markers coloured."""
    shown = Text(printable(text))
    for match in _MARKERS.finditer(text):
        shown.stylize("bold cyan", match.start(), match.end())
    return shown


def render_sources(answer: Answer, console: Console) -> None:
    """Prints what follows the text of an answer: the passages it cites, and how it fared."""
    console.print()
    for chunk in sorted({citation.chunk for claim in answer.claims for citation in claim.citations}):
        print_passage(console, chunk + 1, answer.passages[chunk])
    console.print(Text(_footer(answer), style="dim"))


def _footer(answer: Answer) -> str:
    dropped = sum(drop.count for drop in answer.dropped)
    state = "verified" if answer.verified else "not verified whole"
    parts = [state, *([f"{dropped} dropped"] if dropped else []), *(["cut short"] if answer.truncated else [])]
    return f"\n{', '.join(parts)} · {answer.timings_ms.total / 1000:.1f} s"


def print_passage(console: Console, number: int, passage: PassageOut, *, excerpt: bool = False) -> None:
    """One line (number, title, where from); with ``excerpt``, the beginning of its text under it."""
    line = Text(f"[{number}] ", style="bold cyan")
    line.append(one_line(passage.title) or passage.id, style="bold")
    where = passage.url or passage.source_path or passage.source
    if where:
        line.append(f"  {one_line(where)}", style="dim")
    console.print(line, soft_wrap=True)
    if excerpt:
        words = one_line(passage.text)
        console.print(Text(f"    {words[:160]}{'…' if len(words) > 160 else ''}"), soft_wrap=True)
