"""What becomes of declined questions: the seam to the backlog of knowledge gaps.

It stands apart from the other seams because it is handed whole answers, which models know nothing of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from serving.answer.types import Outcome
from serving.answer.wire import Answer


class GapSink(Protocol):
    """Takes every finished answer and keeps the declined ones. It never raises, never waits, never fails an answer."""

    def record(self, question: str, answer: Answer, *, tenant: str | None = None) -> None: ...


def is_gap(answer: Answer) -> bool:
    """Whether an answer is a knowledge gap: declined or refused. Incidents are no answers at all."""
    return answer.outcome is Outcome.DECLINED and answer.decline is not None


@dataclass
class MemoryGapSink:
    """The reference: keeps gaps in memory, in order, without grouping and without bound."""

    gaps: list[tuple[str, Answer, str | None]] = field(default_factory=list)

    def record(self, question: str, answer: Answer, *, tenant: str | None = None) -> None:
        if is_gap(answer):
            self.gaps.append((question, answer, tenant))
