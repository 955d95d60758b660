"""What reranker, verifier and embedder run on: a thread that reads tokens, the batcher, and a thread that computes.

The event loop does neither: it only decides what goes into the next pass. Where a GPU computes, a thread before that
one copies the inputs of the next pass meanwhile, and a thread behind it awaits the results (:mod:`models.transfer`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Generic, TypeVar

from models.batcher.batcher import Batcher, Wanted
from models.batcher.work import Done, R, T, Totals
from models.device import DeviceThread
from serving.answer.errors import DeadlineExceededError, UnavailableError
from serving.answer.types import Clock, Deadline

S = TypeVar("S")

Check = Callable[[], None]
"""Called while tokens are read, between two texts. Raises when nobody waits for the result any more."""


Launch = Callable[[], Callable[[], Sequence[T]]]
"""Puts a pass whose inputs are on their way into the GPU's queue; what that gives awaits its results."""


class _AbandonedError(Exception):
    """The caller has gone. Nobody sees this."""


class EncoderRuntime(Generic[R, T]):
    """Computes rows with ``forward``, which is called on a thread of its own and gives a result for each, in order.

    ``budget`` bounds the padded tokens of a pass, ``threads`` is the width of an operation on a CPU. After
    ``patience_s`` seconds of work and no finished pass it is unhealthy. With ``stage`` a pass is computed in three
    parts, each on a thread of its own, instead of by ``forward``: a part of a pass goes on beside those of others, and
    passes keep their order.
    """

    def __init__(
        self,
        name: str,
        forward: Callable[[list[R]], Sequence[T]],
        *,
        threads: int,
        budget: int,
        patience_s: float = 60.0,
        clock: Clock = time.monotonic,
        stage: Callable[[list[R]], Launch[T]] | None = None,
    ) -> None:
        self._name = name
        self._forward = forward
        self._stage = stage
        self._clock = clock
        self._device = DeviceThread(name, threads=threads)
        self._copiers = [DeviceThread(name, threads=1) for _ in ("in", "out")] if stage else []
        self._reader = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-reader")
        self._batcher = Batcher[R, T](name, self._compute, budget=budget, clock=clock, patience_s=patience_s)

    @property
    def totals(self) -> Totals:
        """What all passes held, with and without padding."""
        return self._batcher.totals

    async def run(
        self, read: Callable[[Check], tuple[Sequence[R], S]], *, deadline: Deadline | None = None
    ) -> tuple[Done[T], S]:
        """The results of the rows that ``read(check)`` gives, and what it gives beside them.

        After the caller is cancelled, at most the pass under way is finished. Raises
        :class:`~serving.answer.errors.DeadlineExceededError`, :class:`~serving.answer.errors.UnavailableError`, and
        whatever ``read`` raises that is an :class:`~serving.answer.errors.AnswerError`.
        """
        began = self._clock()
        rows, beside = await self._read(read, deadline)
        tokenise_s = self._clock() - began
        done = await self._batcher.submit(rows, deadline=deadline)
        phases = replace(done.phases, tokenise_s=tokenise_s, total_s=done.phases.total_s + tokenise_s)
        return Done(done.results, phases), beside

    def health(self) -> None:
        """Raises :class:`~serving.answer.errors.UnavailableError` when there is work and nothing comes of it."""
        if self._batcher.stalled:
            raise UnavailableError(
                f"The {self._name} has had work for {self._batcher.silent_s():.0f} s and finished none of it."
            )

    def close(self) -> None:
        """Fails what waits, and ends the threads once the pass under way is finished."""
        self._batcher.close()
        self._reader.shutdown(wait=True, cancel_futures=True)
        for thread in (self._device, *self._copiers):
            thread.close()

    async def _read(
        self, read: Callable[[Check], tuple[Sequence[R], S]], deadline: Deadline | None
    ) -> tuple[Sequence[R], S]:
        abandoned = threading.Event()

        def check() -> None:
            if abandoned.is_set():
                raise _AbandonedError
            if deadline is not None and deadline.passed:
                raise DeadlineExceededError(f"The deadline passed before the {self._name} was done.")

        def job() -> tuple[Sequence[R], S]:
            check()
            return read(check)

        try:
            reading = asyncio.get_running_loop().run_in_executor(self._reader, job)
        except RuntimeError:  # the executor's word for: shut down
            raise UnavailableError(f"The {self._name} is closed.") from None
        try:
            return await reading
        except asyncio.CancelledError:
            abandoned.set()
            raise

    async def _compute(self, rows: list[R], wanted: Wanted) -> Sequence[T]:
        stage = self._stage
        if stage is None:
            return await self._device.run(lambda: self._forward(rows) if wanted() else [])
        into, out = self._copiers
        launch = await into.run(lambda: stage(rows) if wanted() else None)
        fetch = await self._device.run(lambda: launch() if launch and wanted() else None)
        return await out.run(fetch) if fetch else []
