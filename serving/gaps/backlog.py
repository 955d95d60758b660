"""The backlog of a running server: declines are taken at once, written behind the answers' backs, then grouped.

An asking is acknowledged when its transaction is committed: from then on it survives the end of the process and a
loss of power. Until then it waits in memory, usually for milliseconds. Only :meth:`Backlog.flush` waits for that; what
a page shows is acknowledged. An answer never waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np

from serving.answer.errors import AnswerError
from serving.answer.gaps import is_gap
from serving.answer.types import Clock
from serving.answer.wire import Answer
from serving.gaps.errors import GapsUnavailableError, UnstorableGapError
from serving.gaps.grouping import Grouper
from serving.gaps.likeness import embedded_form
from serving.gaps.records import RETRY_PREFIX, Asking, GapPage, GapQuery
from serving.gaps.settings import GapsSettings, Questions
from serving.gaps.store import GapStore
from serving.gaps.vectors import Vectors

log = logging.getLogger("ray.serve")

T = TypeVar("T")
Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Questions in; an array of shape (n, dim), float32, rows of length 1, out."""

BATCH = 100
EMBED_BATCH = 16
SAY_EVERY_S = 60.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
BETWEEN_PASSES_S = 1.0


class Backlog:
    """A :class:`~serving.answer.gaps.GapSink` over a store. For one event loop, on which its methods are called."""

    def __init__(
        self,
        store: GapStore,
        settings: GapsSettings,
        *,
        embed: Embed,
        embedder: str,
        now: Callable[[], datetime],
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._settings = settings
        self._grouper = Grouper(store, settings, embedder=embedder)
        self._embed = embed
        self._now = now
        self._sleep = sleep
        self._said = _SeldomSaid(clock)
        self._waiting: deque[Asking] = deque()
        self._taken = 0
        self._settled = 0
        self.dropped = 0
        self._moved = asyncio.Condition()
        self._to_write = asyncio.Event()
        self._to_group = asyncio.Event()
        self._to_group.set()  # what an earlier process left ungrouped
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="gaps")
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins to write and to group."""
        self._tasks = [asyncio.create_task(self._write_all())]
        if self._settings.questions is Questions.KEEP:
            self._tasks.append(asyncio.create_task(self._group_all()))

    def record(self, question: str, answer: Answer, *, tenant: str | None = None) -> None:
        if not is_gap(answer) or answer.request_id.startswith(RETRY_PREFIX):
            return
        if len(self._waiting) >= self._settings.max_waiting:
            self.dropped += 1
            self._said.warn("full", "%d declined questions found no room in the gap backlog's queue", self.dropped)
            return
        try:
            asking = Asking.of(question, answer, tenant=tenant, at=self._now(), settings=self._settings)
        except Exception:  # an answer must not fail for its record
            log.exception("a declined question could not be recorded")
            return
        self._waiting.append(asking)
        self._taken += 1
        self._to_write.set()

    async def flush(self) -> None:
        """Returns when all that was recorded so far is durable, or was given up with a log line."""
        wanted = self._taken
        async with self._moved:
            await self._moved.wait_for(lambda: self._settled >= wanted)

    async def page(self, query: GapQuery) -> GapPage:
        """One page of gaps. Raises :class:`~serving.answer.errors.AnswerError`."""
        return await self._in_thread(lambda: self._store.page(query))

    async def close(self, timeout_s: float) -> None:
        """Writes what waits, for at most ``timeout_s`` seconds, and stops."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.flush(), timeout_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._waiting:
            log.warning("%d declined questions were not written before the end", len(self._waiting))
        self._threads.shutdown(wait=False)
        self._store.database.close()

    async def _write_all(self) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            await self._to_write.wait()
            self._to_write.clear()
            while self._waiting:
                batch = list(islice(self._waiting, BATCH))
                try:
                    await self._in_thread(partial(self._write, batch))
                except AnswerError as error:
                    self._said.warn("write", "%s [%s]; %d wait", error.message, error.code, len(self._waiting))
                except Exception as error:  # a bug of ours ends neither the task nor what waits
                    self._said.warn("write", "declined questions cannot be written: %r", error)
                else:
                    wait_s = FIRST_WAIT_S
                    await self._settle(len(batch))
                    self._to_group.set()
                    continue
                await self._sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _write(self, batch: list[Asking]) -> None:
        try:
            self._store.write(batch)
        except UnstorableGapError as error:
            if len(batch) > 1:
                for asking in batch:
                    self._write([asking])
                return
            self.dropped += 1
            self._said.warn("unstorable", "a declined question is given up: %s [%s]", error.message, error.code)

    async def _settle(self, count: int) -> None:
        async with self._moved:
            for _ in range(count):
                self._waiting.popleft()
            self._settled += count
            self._moved.notify_all()

    async def _group_all(self) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            await self._to_group.wait()
            self._to_group.clear()
            try:
                while await self._group_some():
                    await self._sleep(BETWEEN_PASSES_S)
                wait_s = FIRST_WAIT_S
                await self._sleep(BETWEEN_PASSES_S)
            except Exception as error:  # of any embedder: its questions stay ungrouped until it is back
                code = error.code if isinstance(error, AnswerError) else type(error).__name__
                kind = "write" if isinstance(error, GapsUnavailableError) else "group"  # the writer says it as well
                self._said.warn(kind, "knowledge gaps are grouped later: %s [%s]", error, code)
                self._to_group.set()
                await self._sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _group_some(self) -> bool:
        """Groups the oldest that wait. Whether there were any."""
        waiting = await self._in_thread(lambda: self._grouper.waiting(EMBED_BATCH))
        if not waiting:
            return False
        vectors = np.asarray(await self._embed([embedded_form(question) for question in waiting.values()]), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(waiting):
            raise ValueError(f"the embedder gave an array of shape {vectors.shape} for {len(waiting)} questions")
        await self._in_thread(lambda: self._grouper.group(dict(zip(waiting, vectors, strict=True))))
        return True

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            done = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RuntimeError as error:  # what a pool of threads that was shut down raises
            raise GapsUnavailableError("the gap backlog is closed") from error
        return await done


class _SeldomSaid:
    """Warnings, each kind at most once a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[str, float] = {}

    def warn(self, kind: str, message: str, *values: object) -> None:
        now = self._clock()
        if kind not in self._last or now - self._last[kind] >= SAY_EVERY_S:
            self._last[kind] = now
            log.warning(message, *values)
