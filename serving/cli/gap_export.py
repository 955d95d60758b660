"""Gaps in a file: JSON lines or CSV. A file appears whole or not at all."""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from serving.cli.console import Steps
from serving.gaps.records import GapOut

Writer = Callable[[TextIO, Iterator[GapOut]], None]

COLUMNS = ("id", "state", "count", "first_seen", "last_seen", "reason", "cause", "route", "tenant", "question",
           "question_hash", "resolved_at", "note", "answered_request_id")  # fmt: skip


def _write_jsonl(out: TextIO, gaps: Iterator[GapOut]) -> None:
    for gap in gaps:
        out.write(gap.model_dump_json() + "\n")


def _write_csv(out: TextIO, gaps: Iterator[GapOut]) -> None:
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for gap in gaps:
        last, closed = gap.latest, gap.resolution
        rows.writerow(
            (
                gap.id,
                gap.state.value,
                gap.count,
                gap.first_seen.isoformat(),
                gap.last_seen.isoformat(),
                last and last.reason.value,
                last and last.cause and last.cause.value,
                last and last.route_ran.value,
                _plain(gap.tenant),
                _plain(gap.question),
                gap.question_hash,
                closed and closed.at.isoformat(),
                closed and _plain(closed.note),
                closed and _plain(closed.answered_request_id),
            )
        )


def _plain(text: str | None) -> str | None:
    """Text that a spreadsheet shows and does not run: strangers wrote it."""
    return f"'{text}" if text and text[0] in "=+-@\t\r" else text


FORMATS: dict[str, Writer] = {"jsonl": _write_jsonl, "csv": _write_csv}


def write_file(name: str, write: Writer, gaps: Iterable[GapOut], steps: Steps) -> int:
    """Writes gaps to a file, or to standard output for ``-``; returns how many. Raises ``OSError``."""
    counted = _Counted(gaps, steps)
    if name == "-":
        write(sys.stdout, iter(counted))
        return counted.count
    path = Path(name)
    if path.exists() and not path.is_file():  # a pipe or a device takes what comes
        with path.open("w", encoding="utf-8", newline="") as out:
            write(out, iter(counted))
        return counted.count
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            write(out, iter(counted))
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
    return counted.count


class _Counted:
    def __init__(self, gaps: Iterable[GapOut], steps: Steps) -> None:
        self._gaps = gaps
        self._steps = steps
        self.count = 0

    def __iter__(self) -> Iterator[GapOut]:
        for gap in self._gaps:
            yield gap
            self.count += 1
            self._steps.every(f"{self.count} gaps")
