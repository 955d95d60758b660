"""What a batcher holds: requests, and their rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from serving.answer.types import Deadline, Phases


class Row(Protocol):
    """One row of a forward pass. ``length`` is its exact number of tokens, at least 1."""

    @property
    def length(self) -> int: ...


R = TypeVar("R", bound=Row)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What came of a request: one result for each row, in order, and where the time went."""

    results: list[T]
    phases: Phases


class Request(Generic[R, T]):
    """A call: all its rows are answered, or none is. ``over`` is true once nobody waits for them any more.

    ``over`` is also read by the thread that computes: it is set once, and never taken back.
    """

    def __init__(
        self, rows: Sequence[R], deadline: Deadline | None, future: asyncio.Future[list[T]], *, now: float
    ) -> None:
        self.entries = [Entry(self, index, row) for index, row in enumerate(rows)]
        self.deadline = deadline
        self.future = future
        self.over = False
        self._results: dict[int, T] = {}
        self._began = now
        self._compute_s = 0.0
        self._padded = 0

    @property
    def late(self) -> bool:
        return self.deadline is not None and self.deadline.passed

    def answer(self, index: int, result: T) -> None:
        """Takes the result of a row; the last one answers the request."""
        self._results[index] = result
        if len(self._results) == len(self.entries):
            self.over = True
            if not self.future.done():
                self.future.set_result([self._results[index] for index in range(len(self.entries))])

    def fail(self, error: Exception) -> None:
        """Ends the request; what is left of its rows is not computed."""
        self.over = True
        if not self.future.done():
            self.future.set_exception(error)

    def passed(self, *, seconds: float, padded: int) -> None:
        """Notes a pass that held rows of this request: how long it took, and the token slots that they filled."""
        self._compute_s += seconds
        self._padded += padded

    def phases(self, now: float) -> Phases:
        total = now - self._began
        return Phases(
            queue_s=max(0.0, total - self._compute_s),
            compute_s=self._compute_s,
            total_s=total,
            tokens=sum(entry.row.length for entry in self.entries),
            padded_tokens=self._padded,
        )


@dataclass(slots=True, eq=False)
class Entry(Generic[R, T]):
    """Row number ``index`` of a request."""

    request: Request[R, T]
    index: int
    row: R


@dataclass(slots=True)
class Totals:
    """What a batcher's passes held since it was made. Padded over real tokens is what padding costs."""

    passes: int = 0
    rows: int = 0
    tokens: int = 0
    padded_tokens: int = 0

    def add(self, lengths: Sequence[int]) -> None:
        self.passes += 1
        self.rows += len(lengths)
        self.tokens += sum(lengths)
        self.padded_tokens += len(lengths) * max(lengths)
