"""Replaces what replies are made with, while they are being made: none fails, none is made with two.

Each reply holds on to what was current when it began. There are two ways to replace that:

* :meth:`Swap.exchange`, when there is room for one only (weights that are overwritten in place): those under way end
  first, those that come meanwhile wait, and then the change is made with nobody looking;
* :meth:`Swap.hand_over`, when old and new stand side by side (an adapter beside the weights, a second encoder): who
  comes from now on gets the new, and the old is retired once its last reply has ended.

Used on one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from serving.answer.errors import UnavailableError

W = TypeVar("W")


class BusyError(UnavailableError):
    """The replies under way did not end in time, so nothing was replaced."""

    code = "weights_busy"


class _Turn(Generic[W]):
    """What was current from one replacement to the next, and who still uses it."""

    def __init__(self, held: W) -> None:
        self.held = held
        self.idle = asyncio.Event()
        self.idle.set()
        self._users = 0

    def enter(self) -> None:
        self._users += 1
        self.idle.clear()

    def leave(self) -> None:
        self._users -= 1
        if not self._users:
            self.idle.set()


class Swap(Generic[W]):
    """Holds what is current. Replacements are made one after the other."""

    def __init__(self, current: W) -> None:
        self._turn = _Turn(current)
        self._open = asyncio.Event()
        self._open.set()
        self._replacing = asyncio.Lock()

    @property
    def current(self) -> W:
        """What a reply that begins now is made with."""
        return self._turn.held

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[W, None]:
        """What is current, and stays as it is until this is left. Waits while an exchange is under way."""
        while not self._open.is_set():
            await self._open.wait()
        turn = self._turn
        turn.enter()
        try:
            yield turn.held
        finally:
            turn.leave()

    async def exchange(self, new: W, change: Callable[[], Awaitable[None]], *, patience_s: float) -> None:
        """Runs ``change`` while nobody uses what is current, which is ``new`` from then on.

        Raises :class:`BusyError` when somebody still uses it after ``patience_s``, and what ``change`` raises; what was
        current then still is, so ``change`` must leave it in working order.
        """
        async with self._replacing:
            self._open.clear()
            try:
                try:
                    async with asyncio.timeout(patience_s):
                        await self._turn.idle.wait()
                except TimeoutError:
                    raise BusyError(
                        f"Replies that were under way had not ended after {patience_s:g} s, so the old weights stay: "
                        "try again at a quieter time."
                    ) from None
                await change()
                self._turn = _Turn(new)
            finally:
                self._open.set()

    async def hand_over(self, new: W, retire: Callable[[W], Awaitable[None]]) -> None:
        """Makes ``new`` current at once, and runs ``retire`` on the old when nobody uses it any more; then returns."""
        async with self._replacing:
            old, self._turn = self._turn, _Turn(new)
            await old.idle.wait()
            await retire(old.held)
