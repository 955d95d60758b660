"""Health as progress: work is in flight, so something must come out."""

from __future__ import annotations

from serving.answer.types import Clock


class Progress:
    """Counts what is in flight and remembers when something last came out.

    ``patience_s`` is how long nothing may come out while something is in flight.
    """

    def __init__(self, *, patience_s: float, clock: Clock) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._in_flight = 0
        self._moved_at = clock()

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def began(self) -> None:
        if self._in_flight == 0:  # idle time is not silence
            self._moved_at = self._clock()
        self._in_flight += 1

    def moved(self) -> None:
        self._moved_at = self._clock()

    def ended(self) -> None:
        self._in_flight -= 1
        self.moved()

    def silent_s(self) -> float:
        """Seconds since something came out, 0 when nothing is in flight."""
        return self._clock() - self._moved_at if self._in_flight else 0.0

    @property
    def stalled(self) -> bool:
        return self.silent_s() > self._patience_s
