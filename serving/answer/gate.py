"""Admission: what may run at once, in concurrency and in tokens, all or nothing, before any work.

Every kind of call has a budget of its own, so a flood of one cannot starve another. One gate belongs to one event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum

from serving.answer.errors import OverloadedError
from serving.answer.lane import Budget, Kind, Lane, Load, Permit
from serving.answer.tenants import TenantLanes
from serving.answer.types import Clock

__all__ = ["Attempt", "Budget", "Gate", "Kind", "Load", "Permit", "WhenAgenticIsSpent", "attempts"]


class WhenAgenticIsSpent(StrEnum):
    """What happens to an agentic question whose budget is spent. It is never quietly answered by bare search."""

    WAIT = "wait"
    SINGLE_PASS = "single_pass"  # noqa: S105
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try for a permit of a kind, waiting up to ``wait_s`` seconds for it."""

    kind: Kind
    wait_s: float


def attempts(kind: Kind, when_spent: WhenAgenticIsSpent, wait_s: float) -> tuple[Attempt, ...]:
    """What to try, in order, for a call of ``kind``. Only agentic ones have a choice."""
    if kind is not Kind.AGENTIC or when_spent is WhenAgenticIsSpent.WAIT:
        return (Attempt(kind, wait_s),)
    at_once = Attempt(kind, 0.0)
    return (at_once,) if when_spent is WhenAgenticIsSpent.REJECT else (at_once, Attempt(Kind.SINGLE_PASS, wait_s))


class Gate:
    """The budgets of one replica. Raises ValueError when a kind has none.

    ``tenants`` says for some kinds what one tenant may hold of them.
    """

    def __init__(
        self, budgets: Mapping[Kind, Budget], clock: Clock, *, tenants: Mapping[Kind, Budget] | None = None
    ) -> None:
        missing = [kind.value for kind in Kind if kind not in budgets]
        if missing:
            raise ValueError(f"every kind needs a budget; missing: {', '.join(missing)}")
        self._clock = clock
        self._lanes = {kind: Lane(kind, budgets[kind], clock) for kind in Kind}
        self._tenants = {kind: TenantLanes(kind, budget, clock) for kind, budget in (tenants or {}).items()}

    def permit(
        self, kind: Kind, *, tokens: int, wait_s: float, tenant: str | None = None
    ) -> AbstractAsyncContextManager[Permit]:
        """Reserves ``tokens``, the most the call may use, for as long as the block runs, however it is left.

        Waits up to ``wait_s`` seconds; 0 does not wait. Entering raises :class:`OverloadedError` when the wait is over,
        when the queue is full, and at once, with no ``retry_after_s``, when ``tokens`` is more than the kind's whole
        budget. With a ``tenant`` both its share and the kind's budget must have room: its own is waited for first, so
        that its calls wait behind each other and not in everybody's queue. Enter it once.
        """
        tries = [(self._lanes[kind], tokens, wait_s)]
        if tenant is None or kind not in self._tenants:
            return _Admission(tries)
        return _TenantAdmission(self._tenants[kind].lane(tenant), tries, self._clock)

    def admit(
        self, kind: Kind, *, ceilings: Mapping[Kind, int], wait_s: float, when_spent: WhenAgenticIsSpent
    ) -> AbstractAsyncContextManager[Permit]:
        """As :meth:`permit`, by the policy for agentic questions: ``permit.kind`` is what was granted.

        ``ceilings`` holds the tokens to reserve for each kind that may be granted. When nothing is granted, the error
        is that of the last attempt.
        """
        return _Admission(
            [
                (self._lanes[attempt.kind], ceilings[attempt.kind], attempt.wait_s)
                for attempt in attempts(kind, when_spent, wait_s)
            ]
        )

    def load(self, kind: Kind, *, tenant: str | None = None) -> Load:
        """What is out of a kind, or of a tenant's share of it."""
        if tenant is not None and kind in self._tenants:
            return self._tenants[kind].load(tenant)
        return self._lanes[kind].load()


class _Admission(AbstractAsyncContextManager[Permit]):
    """The first permit that is granted, for the length of a block.

    Not a generator: one that is suspended in its first half is not told when its caller's coroutine is closed.
    """

    def __init__(self, tries: Sequence[tuple[Lane, int, float]]) -> None:
        *self._first, self._last = tries
        self._permit: Permit | None = None

    async def __aenter__(self) -> Permit:
        self._permit = await self._acquire()
        return self._permit

    async def __aexit__(self, *_: object) -> None:
        if self._permit is not None:
            self._permit.release()

    async def _acquire(self) -> Permit:
        for lane, tokens, wait_s in self._first:
            try:
                return await lane.acquire(tokens, wait_s)
            except OverloadedError:
                continue
        lane, tokens, wait_s = self._last
        return await lane.acquire(tokens, wait_s)


class _TenantAdmission(_Admission):
    """A permit out of a tenant's share, and one out of the kind's budget: both or none."""

    def __init__(self, share: Lane, tries: Sequence[tuple[Lane, int, float]], clock: Clock) -> None:
        super().__init__(tries)
        self._share = share
        self._clock = clock

    async def _acquire(self) -> Permit:
        lane, tokens, wait_s = self._last
        until = self._clock() + wait_s
        outer = await self._share.acquire(tokens, wait_s)
        try:
            inner = await lane.acquire(tokens, max(0.0, until - self._clock()))
        except BaseException:
            outer.release()
            raise
        return inner.within(outer)
