"""How often questions take a costlier route than they could: the health signal of routing."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from serving.answer.types import Clock, Route

# How finely the window slides: what is counted leaves it up to a sixtieth of the window early.
_SLICES = 60


@dataclass(slots=True)
class _Slice:
    number: int
    escalated: int = 0
    total: int = 0


class EscalationMonitor:
    """Watches the share of escalated routes over the last ``window_s`` seconds, in bounded memory.

    ``escalated`` holds the routes that count. Both ``single_pass`` and ``agentic`` cost more than ``search``, but
    ``single_pass`` is where policy sends whatever is ambiguous: counted, it would hold the rate near 1 and the alarm
    on. So by default only ``agentic`` counts, the route that it takes a cue to choose.

    Raises ValueError for a window that is not positive, an ``alarm_above`` outside [0, 1] or a ``minimum`` below 1.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        window_s: float = 300.0,
        alarm_above: float = 0.30,
        minimum: int = 20,
        escalated: AbstractSet[Route] = frozenset({Route.AGENTIC}),
    ) -> None:
        if not (math.isfinite(window_s) and window_s > 0):
            raise ValueError(f"window_s must be a positive number of seconds, not {window_s}")
        if not 0 <= alarm_above <= 1:
            raise ValueError(f"alarm_above is a share in [0, 1], not {alarm_above}")
        if minimum < 1:
            raise ValueError(f"minimum must be at least 1, not {minimum}")
        self._clock = clock
        self._slice_s = window_s / _SLICES
        self._alarm_above = alarm_above
        self._minimum = minimum
        self._escalated = frozenset(escalated)
        self._slices: deque[_Slice] = deque()

    def record(self, route: Route) -> None:
        """Counts one question."""
        number = self._forget()
        if not self._slices or self._slices[-1].number != number:
            self._slices.append(_Slice(number))
        current = self._slices[-1]
        current.total += 1
        current.escalated += route in self._escalated

    def rate(self) -> float:
        """The share in [0, 1] of the questions in the window that escalated; 0 when there were none."""
        escalated, total = self._counts()
        return escalated / total if total else 0.0

    @property
    def alarmed(self) -> bool:
        """Whether the rate is above ``alarm_above`` over at least ``minimum`` questions."""
        escalated, total = self._counts()
        return total >= self._minimum and escalated / total > self._alarm_above

    def _counts(self) -> tuple[int, int]:
        self._forget()
        return sum(part.escalated for part in self._slices), sum(part.total for part in self._slices)

    def _forget(self) -> int:
        """Drops what has left the window and returns the number of the slice that is now."""
        now = math.floor(self._clock() / self._slice_s)
        while self._slices and self._slices[0].number <= now - _SLICES:
            self._slices.popleft()
        return now
