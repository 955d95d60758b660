"""One kind's budget: who holds it, who waits, and in which order they get it.

First come, first served: a large reservation at the head waits until it fits, and smaller ones behind it do not pass.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from serving.answer.drain import DrainMeter
from serving.answer.errors import OverloadedError
from serving.answer.types import Clock

_RETRY_AFTER_S = (1.0, 60.0)
# Before anything has been released there is no rate to go by.
_UNMEASURED_RETRY_AFTER_S = 5.0
# Calls that share a model end in bunches, so that a wait may be some times what the pace says.
_DOUBT = 3.0


class Kind(StrEnum):
    """What is gated: the three routes, and models that are called on their own (rerank, check, embeddings)."""

    SEARCH = "search"
    SINGLE_PASS = "single_pass"  # noqa: S105
    AGENTIC = "agentic"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Budget:
    """``concurrency`` permits and ``tokens`` reserved tokens at once; ``queue`` calls may wait for them.

    Raises ValueError for a concurrency below 1 or a negative number.
    """

    concurrency: int
    tokens: int
    queue: int

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {self.concurrency}")
        if self.tokens < 0 or self.queue < 0:
            raise ValueError(f"tokens and queue must not be negative: {self.tokens}, {self.queue}")


@dataclass(frozen=True, slots=True)
class Load:
    """What a kind has out now: permits held, tokens they reserve, calls that wait."""

    held: int
    tokens: int
    waiting: int


class Permit:
    """A reservation that was granted. ``kind`` is what may run, ``reserved`` the tokens it still holds back."""

    def __init__(self, lane: Lane, tokens: int) -> None:
        self._lane = lane
        self._outer: Permit | None = None
        self._released = False
        self.reserved = tokens

    @property
    def kind(self) -> Kind:
        return self._lane.kind

    def within(self, outer: Permit) -> Permit:
        """The same permit; from now on it settles and releases ``outer`` with itself."""
        self._outer = outer
        return self

    def settle(self, used: int) -> None:
        """Lowers the reservation to ``used`` tokens, and what that frees is granted at once. It never raises it."""
        if self._outer is not None:
            self._outer.settle(used)
        freed = self.reserved - max(0, used)
        if freed > 0 and not self._released:
            self.reserved -= freed
            self._lane.free(tokens=freed)

    def release(self) -> None:
        """Gives everything back, once: further calls do nothing."""
        if self._outer is not None:
            self._outer.release()
        if not self._released:
            self._released = True
            freed, self.reserved = self.reserved, 0
            self._lane.free(tokens=freed, permits=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A call in the queue. ``granted`` is settled once: true with a permit, false when the wait is over."""

    tokens: int
    granted: asyncio.Future[bool]


class Lane:
    """One kind's budget, who holds it and who waits. ``whose`` says in errors that it is less than the kind's whole."""

    def __init__(self, kind: Kind, budget: Budget, clock: Clock, *, whose: str = "") -> None:
        self.kind = kind
        self._name = f"{whose}{kind.value}"
        self._budget = budget
        self._held = 0
        self._tokens = 0
        # In order of arrival. A waiter whose task was cancelled stays until that task has run; nobody counts it.
        self._queue: dict[_Waiter, None] = {}
        self._drain = DrainMeter(clock)

    def load(self) -> Load:
        return Load(self._held, self._tokens, sum(not waiter.granted.done() for waiter in self._queue))

    async def acquire(self, tokens: int, wait_s: float) -> Permit:
        if tokens < 0:
            raise ValueError(f"tokens must not be negative, not {tokens}")
        if tokens > self._budget.tokens:
            raise OverloadedError(
                f"this call may use {tokens} tokens, more than the whole {self._name} budget of {self._budget.tokens}: "
                "ask for less"
            )
        waiting = self.load().waiting
        if waiting == 0 and self._fits(tokens):
            return self._take(tokens)
        if not wait_s > 0:
            raise self._overloaded("is spent", tokens)
        if waiting >= self._budget.queue:
            raise self._overloaded("is spent and its queue is full", tokens)
        if _DOUBT * self._expected_s(tokens) > wait_s:
            raise self._overloaded(f"is spent and may not free up within {wait_s:g} s", tokens)
        return await self._wait(tokens, wait_s)

    def free(self, *, tokens: int, permits: int = 0) -> None:
        self._drain.released(_work(tokens, permits))
        self._tokens -= tokens
        self._held -= permits
        self._drain.busy(busy=self._held > 0)
        self._grant()

    async def _wait(self, tokens: int, wait_s: float) -> Permit:
        loop = asyncio.get_running_loop()
        waiter = _Waiter(tokens, loop.create_future())
        self._queue[waiter] = None
        expiry = loop.call_later(wait_s, self._expire, waiter)
        try:
            granted = await waiter.granted
        except BaseException:
            self._leave(waiter)
            raise
        finally:
            expiry.cancel()
        if not granted:
            raise self._overloaded(f"did not free up within {wait_s:g} s", tokens)
        return Permit(self, tokens)

    def _expire(self, waiter: _Waiter) -> None:
        if not waiter.granted.done():
            waiter.granted.set_result(False)
            del self._queue[waiter]
            self._grant()

    def _leave(self, waiter: _Waiter) -> None:
        """The waiting call went away, perhaps after it was granted and before it could run."""
        if waiter in self._queue:
            del self._queue[waiter]
            self._grant()
        elif not waiter.granted.cancelled() and waiter.granted.result():
            self.free(tokens=waiter.tokens, permits=1)

    def _grant(self) -> None:
        """Grants from the head of the queue for as long as the head fits."""
        while self._queue:
            waiter = next(iter(self._queue))
            if not waiter.granted.cancelled():
                if not self._fits(waiter.tokens):
                    return
                self._reserve(waiter.tokens)
                waiter.granted.set_result(True)
            del self._queue[waiter]

    def _expected_s(self, tokens: int) -> float:
        """How long a call of ``tokens`` would wait at the pace that was measured; 0 as long as none was.

        Who would wait in vain is told at once, while it can still go elsewhere, and holds no place in the queue.
        """
        rate = self._drain.rate()
        if not rate > 0 or not self._held:
            return 0.0
        waiting = [waiter.tokens for waiter in self._queue if not waiter.granted.done()]
        missing = self._tokens + sum(waiting) + tokens - self._budget.tokens
        # Calls that run are taken to be of one size: what one gives back comes with its permit.
        each = _work(self._tokens, self._held) / self._held
        calls = self._held + len(waiting) + 1 - self._budget.concurrency
        return max(missing, calls * each) / rate

    def _fits(self, tokens: int) -> bool:
        return self._held < self._budget.concurrency and self._tokens + tokens <= self._budget.tokens

    def _take(self, tokens: int) -> Permit:
        self._reserve(tokens)
        return Permit(self, tokens)

    def _reserve(self, tokens: int) -> None:
        self._drain.busy(busy=True)
        self._held += 1
        self._tokens += tokens

    def _overloaded(self, what: str, tokens: int) -> OverloadedError:
        ahead = _work(self._tokens, self._held) + sum(
            _work(waiter.tokens, 1) for waiter in self._queue if not waiter.granted.done()
        )
        rate = self._drain.rate()
        least, most = _RETRY_AFTER_S
        seconds = min(most, max(least, ahead / rate)) if rate > 0 else _UNMEASURED_RETRY_AFTER_S
        return OverloadedError(
            f"the {self._name} budget {what}: {self._held} running, {tokens} tokens asked for, "
            f"{self._budget.tokens - self._tokens} of {self._budget.tokens} free",
            retry_after_s=seconds,
        )


def _work(tokens: int, permits: int) -> int:
    """Tokens, and one more a permit, so that kinds that use no tokens have a backlog and a rate as well."""
    return tokens + permits
