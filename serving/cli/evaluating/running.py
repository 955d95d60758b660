"""Runs cases side by side, writes each down as it finishes, and says how far it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from serving.answer.errors import AnswerError
from serving.cli.console import Steps
from serving.cli.evaluating.errors import RunStoppedError
from serving.cli.evaluating.kept import C, Kept
from serving.evaluation.records import Record

R = TypeVar("R", bound="Named")

PATIENCE = 5
"""So many cases in a row that break stop a run: what breaks them all is not in the cases."""


class Named(Protocol):
    @property
    def id(self) -> str: ...


async def run_cases(
    rows: Sequence[R],
    do: Callable[[R], Awaitable[C]],
    kind: type[C],
    kept: Kept[C],
    *,
    concurrency: int,
    steps: Steps,
    what: str = "cases",
) -> dict[str, C]:
    """The record of every row, those of an earlier run included. A row that breaks becomes a record with its error.

    Raises :class:`RunStoppedError` when nothing works any more, and whatever ``do`` raises that is no
    :class:`~serving.answer.errors.AnswerError`; what was finished is kept.
    """
    todo = [row for row in rows if row.id not in kept.finished]
    if len(todo) < len(rows):
        steps.say(f"{len(rows) - len(todo)} of {len(rows)} {what} are finished already")
    progress = _Progress(len(todo), what, steps)
    waiting = iter(todo)
    workers = [
        asyncio.create_task(_work(waiting, do, kind, kept, progress)) for _ in range(min(concurrency, len(todo)))
    ]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return kept.cases


async def _work(
    waiting: Iterator[R], do: Callable[[R], Awaitable[C]], kind: type[C], kept: Kept[C], progress: _Progress
) -> None:
    for row in waiting:
        began = time.monotonic()
        try:
            record = await do(row)
        except RunStoppedError:
            raise
        except AnswerError as error:
            record = kind(id=row.id, error=f"{error.code}: {error.message}", ms=(time.monotonic() - began) * 1e3)
        kept.append(record)
        progress.done(record)


class _Progress:
    def __init__(self, total: int, what: str, steps: Steps) -> None:
        self._total = total
        self._what = what
        self._steps = steps
        self._began = time.monotonic()
        self._done = self._broken = self._in_a_row = 0

    def done(self, record: Record) -> None:
        self._done += 1
        self._broken += record.error is not None
        self._in_a_row = self._in_a_row + 1 if record.error is not None else 0
        if self._in_a_row >= PATIENCE:
            raise RunStoppedError(f"{PATIENCE} {self._what} in a row broke, the last with {record.error}")
        rate = self._done / max(1e-9, time.monotonic() - self._began)
        broken = f", {self._broken} broke" if self._broken else ""
        said = f"{self._done} of {self._total} {self._what}{broken}, {(self._total - self._done) / rate:.0f} s left"
        if self._done == self._total:
            self._steps.say(f"{self._done} {self._what} in {self._done / rate:.0f} s{broken}")
        else:
            self._steps.every(said)
