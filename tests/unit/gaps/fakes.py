"""Declined answers, askings, and an embedder that says what it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from serving.answer.types import DeclineReason, Outcome, RefusalCause, Route
from serving.answer.wire import Answer, Decline, PassageOut, RouteOut, Versions
from serving.gaps.likeness import canonical
from serving.gaps.records import Asking
from serving.gaps.settings import GapsSettings
from serving.gaps.vectors import Vectors
from tests.unit.gateway.fakes import PASSAGE

BEGAN = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


def declined(
    request_id: str = "r1",
    *,
    reason: DeclineReason = DeclineReason.NOT_IN_PASSAGES,
    cause: RefusalCause | None = None,
    scores: Sequence[float] = (0.81,),
) -> Answer:
    passages = (PASSAGE.scored(score) for score in scores)
    return Answer(
        request_id=request_id,
        outcome=Outcome.DECLINED,
        decline=Decline(reason=reason, cause=cause, message="The passages do not answer this."),
        route=RouteOut(chosen=Route.AGENTIC, ran=Route.SINGLE_PASS, cue="a comparison"),
        passages=tuple(
            PassageOut.of(passage).model_copy(update={"id": f"p{number}"}) for number, passage in enumerate(passages)
        ),
        versions=Versions(settings="s1", index="generation-1"),
    )


def asking(
    question: str = "What does chain do?",
    *,
    minutes: float = 0.0,
    tenant: str | None = None,
    answer: Answer | None = None,
    settings: GapsSettings | None = None,
) -> Asking:
    answer = answer or declined()
    return Asking.of(question, answer, tenant=tenant, at=at(minutes), settings=settings or GapsSettings())


@dataclass
class FakeEmbedder:
    """Gives each question the direction that it is told (in degrees), or one of its own; fails while ``down``."""

    degrees: Mapping[str, float] = field(default_factory=dict)
    down: bool = False
    asked: list[str] = field(default_factory=list)

    async def __call__(self, questions: Sequence[str]) -> Vectors:
        if self.down:
            raise ConnectionError("the embedder is down")
        self.asked += questions
        return np.stack([self.vector(question) for question in questions])

    def vector(self, question: str) -> Vectors:
        told = {canonical(text): degree for text, degree in self.degrees.items()}
        vector = np.zeros(64, np.float32)
        if canonical(question) in told:
            angle = np.radians(told[canonical(question)])
            vector[:2] = np.cos(angle), np.sin(angle)
        else:
            vector[2 + sum(canonical(question).encode()) % 62] = 1.0
        return vector
