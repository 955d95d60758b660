"""The CPU time that judging takes, told apart from all else in the process, and where prompts are ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import aclosing
from typing import Any

from serving.answer.seams import Generation, Pair, Relevance, Synthesizer, Verifier
from serving.answer.types import Claim, Deadline, Delta, Passage, Verdict


class Meter:
    """Adds up the CPU time of what is awaited through :meth:`timed`, in seconds.

    That is the time of its own steps on the event loop, and of the process's other threads while it waits: the loop's
    other work in the meantime does not count.
    """

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._open = 0
        self._began = 0.0

    async def timed(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._open == 0:
            self._began = _other_threads_s()
        self._open += 1
        try:
            return await _Stepped(work, self)
        finally:
            self._open -= 1
            if self._open == 0:
                self.cpu_s += max(0.0, _other_threads_s() - self._began)


class _Stepped:
    def __init__(self, work: Coroutine[Any, Any, Any], meter: Meter) -> None:
        self._work = work
        self._meter = meter

    def __await__(self) -> Generator[Any, None, Any]:
        thrown: BaseException | None = None
        while True:
            began = time.thread_time()
            try:
                waits_for = self._work.send(None) if thrown is None else self._work.throw(thrown)
            except StopIteration as done:
                return done.value
            finally:
                self._meter.cpu_s += time.thread_time() - began
            try:
                yield waits_for
                thrown = None
            except BaseException as error:  # a cancellation is the work's to handle
                thrown = error


def _other_threads_s() -> float:
    return time.process_time() - time.thread_time()


class MeteredVerifier:
    def __init__(self, verifier: Verifier, meter: Meter) -> None:
        self._verifier = verifier
        self._meter = meter

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> Sequence[Verdict]:
        found: Sequence[Verdict] = await self._meter.timed(self._verifier.verify(pairs, deadline=deadline))
        return found


class MeteredRelevance:
    def __init__(self, relevance: Relevance, meter: Meter) -> None:
        self._relevance = relevance
        self._meter = meter

    async def relevant(
        self, question: str, claims: Sequence[Claim], passages: Sequence[Passage], *, deadline: Deadline
    ) -> Sequence[bool]:
        work = self._relevance.relevant(question, claims, passages, deadline=deadline)
        found: Sequence[bool] = await self._meter.timed(work)
        return found


class Starter:
    """The seam ``Synthesizer``, before another: where the engine's prompts arrive once they are ready.

    Keeps each request, and when it began, by its id. Lets nobody begin before ``together`` have arrived, and sets the
    ``meter`` to nought then: what was judged to make the prompt is not of the answer.
    """

    def __init__(self, synthesizer: Synthesizer, meter: Meter) -> None:
        self._synthesizer = synthesizer
        self._meter = meter
        self._barrier = asyncio.Barrier(1)
        self.requests: dict[str, Generation] = {}
        self.began: dict[str, float] = {}

    def expect(self, together: int) -> None:
        self._barrier = asyncio.Barrier(together)

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        self.requests[request.request_id] = request
        await self._barrier.wait()
        self._meter.cpu_s = 0.0
        self.began[request.request_id] = time.perf_counter()
        async with aclosing(self._synthesizer.generate(request, deadline=deadline)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                yield delta
