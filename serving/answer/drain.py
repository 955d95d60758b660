"""How fast work that was reserved is given back: what a ``Retry-After`` is computed from."""

from __future__ import annotations

import math

from serving.answer.types import Clock

_MEMORY_S = 30.0


class DrainMeter:
    """An exponentially weighted rate of release, in units a second of busy time.

    Time in which nothing is held says nothing about how fast work drains, so it is not counted.
    """

    def __init__(self, clock: Clock, *, memory_s: float = _MEMORY_S) -> None:
        self._clock = clock
        self._memory_s = memory_s
        self._seen = clock()
        self._busy = False
        self._busy_s = 0.0
        self._sum = 0.0

    def busy(self, *, busy: bool) -> None:
        """From now on something is held, or nothing is."""
        self._advance()
        self._busy = busy

    def released(self, units: int) -> None:
        self._advance()
        self._sum += units

    def rate(self) -> float:
        """Units a second over about the last ``memory_s`` seconds of busy time; 0 when nothing was measured."""
        self._advance()
        # What a release of one unit a second would have summed to by now: less than memory_s while the meter is young.
        seconds = self._memory_s * -math.expm1(-self._busy_s / self._memory_s)
        return self._sum / seconds if seconds > 0 else 0.0

    def _advance(self) -> None:
        now = self._clock()
        if self._busy:
            passed = now - self._seen
            self._busy_s += passed
            self._sum *= math.exp(-passed / self._memory_s)
        self._seen = now
