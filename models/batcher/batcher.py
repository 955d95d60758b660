"""Gathers the rows of many requests into forward passes.

A pass is formed when the device frees up, never before: what comes meanwhile joins the next one, and a light load waits
for nothing. Only a pass that is full already is handed over while the one before it still runs, since it cannot grow.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Generic

from models.batcher.forming import choose
from models.batcher.work import Done, Entry, R, Request, T, Totals
from serving.answer.errors import AnswerError, DeadlineExceededError, UnavailableError
from serving.answer.types import Clock, Deadline

_LAUNCH = 16  # a pass costs about a sixteenth of a full one before its first token

Wanted = Callable[[], bool]
"""Whether anybody waits for a pass that has not begun. May be called on any thread."""

Compute = Callable[[list[R], Wanted], Awaitable[Sequence[T]]]
"""One forward pass: a result for each row, in order; anything at all once ``wanted`` is false.

Passes are computed in the order in which they are asked for. An :class:`~serving.answer.errors.AnswerError` says that
the device itself is gone; any other exception is blamed on a row.
"""


class Batcher(Generic[R, T]):
    """Answers requests of rows through ``compute``.

    A pass takes at most ``budget`` padded tokens (rows times the longest row), from the ``window`` rows that have
    waited longest. ``ahead`` full passes may be handed over before the device is free. When ``patience_s`` go by with
    work and no pass finished, it is ``stalled``. ``name`` is what errors call the model. One event loop at a time may
    use it, and all its methods belong to that loop's thread.
    """

    def __init__(
        self,
        name: str,
        compute: Compute[R, T],
        *,
        budget: int,
        clock: Clock,
        window: int = 512,
        ahead: int = 1,
        patience_s: float = 60.0,
    ) -> None:
        if min(budget, window) < 1 or ahead < 0:
            raise ValueError(f"budget {budget} and window {window} must be at least 1, ahead {ahead} at least 0")
        self.totals = Totals()
        self._name = name
        self._compute = compute
        self._budget = budget
        self._clock = clock
        self._window = window
        self._ahead = ahead
        self._patience_s = patience_s
        # In order of arrival; linked, so that rows leave from the middle at no cost to those who look at the front.
        self._queue: OrderedDict[Entry[R, T], None] = OrderedDict()
        self._queued_tokens = 0
        self._passes: set[asyncio.Task[None]] = set()
        self._freed_at = self._moved_at = clock()
        self._closed = self._broken = False
        self._woken: asyncio.AbstractEventLoop | None = None

    async def submit(self, rows: Sequence[R], *, deadline: Deadline | None = None) -> Done[T]:
        """The results of ``rows``, in order.

        Raises :class:`~serving.answer.errors.DeadlineExceededError` when the deadline passes first, and
        :class:`~serving.answer.errors.UnavailableError` when a row fails, or the device. Then, and when the caller is
        cancelled, what is left of the rows is dropped: at most the passes that were handed over hold any.
        """
        if self._closed:
            raise self._gone()
        if deadline is not None and deadline.passed:
            raise self._late()
        request = Request[R, T](rows, deadline, asyncio.get_running_loop().create_future(), now=self._clock())
        if not rows:
            return Done([], request.phases(self._clock()))
        self._take(request)
        try:
            async with asyncio.timeout(None if deadline is None else deadline.remaining()):
                results = await request.future
        except TimeoutError:
            raise self._late() from None
        finally:
            request.over = True
            self._drop(request)
        return Done(results, request.phases(self._clock()))

    @property
    def queued_tokens(self) -> int:
        """Tokens of the rows that wait."""
        return self._queued_tokens

    def silent_s(self) -> float:
        """Seconds without a finished pass while there was work; 0 when there is none."""
        return self._clock() - self._moved_at if self._queue or self._passes else 0.0

    @property
    def stalled(self) -> bool:
        """Whether the device is gone, or nothing came of work that waits for longer than the patience."""
        return self._broken or self.silent_s() > self._patience_s

    def close(self) -> None:
        """Fails what waits and takes nothing more. Passes that were handed over go on, for nobody."""
        self._closed = True
        self._end_all(list(self._queue), self._gone())

    def _take(self, request: Request[R, T]) -> None:
        if not self._queue and not self._passes:  # idle time is not silence
            self._moved_at = self._clock()
        for entry in request.entries:
            self._queue[entry] = None
            self._queued_tokens += entry.row.length
        self._wake()

    def _drop(self, request: Request[R, T]) -> None:
        for entry in request.entries:
            self._remove(entry)

    def _remove(self, entry: Entry[R, T]) -> None:
        if entry in self._queue:
            del self._queue[entry]
            self._queued_tokens -= entry.row.length

    def _end(self, request: Request[R, T], error: Exception) -> None:
        request.fail(error)
        self._drop(request)

    def _wake(self) -> None:
        """Hands over what may be, once all who are about to submit in this turn of the loop have done so."""
        loop = asyncio.get_running_loop()
        if self._woken is not loop:
            self._woken = loop
            loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._woken = None
        while self._queue and self._may_begin():
            entries = self._form()
            if entries:
                task = asyncio.get_running_loop().create_task(self._run(entries))
                self._passes.add(task)
                task.add_done_callback(self._passed)

    def _may_begin(self) -> bool:
        if not self._passes:
            return True
        return len(self._passes) <= self._ahead and self._queued_tokens >= self._budget

    def _form(self) -> list[Entry[R, T]]:
        """Takes the next pass out of the queue, and what is late with it; empty when all of the window was late."""
        window = list(islice(self._queue, self._window))
        for request in {entry.request for entry in window}:
            if request.late:
                self._end(request, self._late())
        window = [entry for entry in window if not entry.request.over]
        if not window:
            return []
        lengths = [entry.row.length for entry in window]
        chosen = [window[index] for index in choose(lengths, self._budget, self._budget // _LAUNCH)]
        for entry in chosen:
            self._remove(entry)
        return chosen

    def _passed(self, task: asyncio.Task[None]) -> None:
        self._passes.discard(task)
        if not task.cancelled() and self._queue:
            self._wake()

    async def _run(self, entries: list[Entry[R, T]]) -> None:
        """Computes a pass. When it fails, its halves are tried, until what is wrong with it fails alone."""
        live = [entry for entry in entries if not entry.request.over]
        if not live:
            return
        begun = self._clock()
        try:
            results = await self._results(live)
        except AnswerError as error:
            self._broken = True
            self._end_all(live, error)
        except Exception as error:
            if len(live) > 1:
                middle = len(live) // 2
                await self._run(live[:middle])
                await self._run(live[middle:])
                return
            failed = UnavailableError(f"The {self._name} failed ({type(error).__name__}).")
            failed.__cause__ = error
            self._end(live[0].request, failed)
        except BaseException:
            self._end_all(live, self._gone())
            raise
        else:
            self._deliver(live, results, begun)

    async def _results(self, live: list[Entry[R, T]]) -> Sequence[T]:
        def wanted() -> bool:
            return any(not entry.request.over for entry in live)

        results = await self._compute([entry.row for entry in live], wanted)
        if wanted() and len(results) != len(live):
            raise ValueError(f"{len(results)} results for {len(live)} rows")
        return results

    def _end_all(self, entries: list[Entry[R, T]], error: AnswerError) -> None:
        for request in {entry.request for entry in entries}:
            self._end(request, copy.copy(error))

    def _deliver(self, entries: list[Entry[R, T]], results: Sequence[T], begun: float) -> None:
        now = self._clock()
        # A pass that was handed over early began when the one before it was done.
        seconds, self._freed_at, self._moved_at = now - max(begun, self._freed_at), now, now
        self._broken = False
        if len(results) != len(entries):  # nobody wanted it
            return
        lengths = [entry.row.length for entry in entries]
        self.totals.add(lengths)
        for request, rows in Counter(entry.request for entry in entries).items():
            request.passed(seconds=seconds, padded=rows * max(lengths))
        for entry, result in zip(entries, results, strict=True):
            if not entry.request.over:
                entry.request.answer(entry.index, result)

    def _late(self) -> DeadlineExceededError:
        return DeadlineExceededError(f"The deadline passed before the {self._name} was done.")

    def _gone(self) -> UnavailableError:
        return UnavailableError(f"The {self._name} is closed.")
