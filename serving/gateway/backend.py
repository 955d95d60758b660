"""What the API asks of the system behind it, and what it is told about itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, Protocol

from serving.answer.direct import CheckedText, Embedded, Reranked
from serving.answer.events import Event
from serving.answer.types import Passage
from serving.answer.wire import Answer
from serving.gaps.records import GapPage, GapQuery

MAX_TIMEOUT_S = 600.0

LongDocument = Literal["chunk_max", "truncate", "error"]
"""What becomes of a document that a model cannot read at once: read in pieces, cut and said to be, or refused."""


class Backend(Protocol):
    """What the API asks of the system. Errors are :class:`~serving.answer.errors.AnswerError`."""

    async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Answer: ...

    def events(self, question: str, *, request_id: str, timeout_s: float) -> AsyncGenerator[Event, None]:
        """The events of one question, ``Finished`` last. Closing it frees all that works on the question."""
        ...

    async def search(self, query: str, limit: int, *, timeout_s: float) -> list[Passage]: ...

    async def rerank(
        self,
        query: str,
        documents: list[str],
        *,
        timeout_s: float,
        tenant: str | None = None,
        long_document: LongDocument | None = None,
    ) -> Reranked:
        """``tenant`` is whose share of the budget the call takes; so in the next two."""
        ...

    async def check(
        self,
        text: str,
        facts: list[Passage],
        *,
        timeout_s: float,
        tenant: str | None = None,
        threshold: float | None = None,
    ) -> CheckedText: ...

    async def embed(
        self, texts: list[str], *, timeout_s: float, tenant: str | None = None, query: bool = False
    ) -> Embedded: ...

    async def gaps(self, query: GapQuery, *, timeout_s: float) -> GapPage: ...

    async def ready(self) -> dict[str, bool]:
        """Each model, and whether it has answered a warm-up."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may ask for: seconds where it names none, bytes of body, characters of question."""

    default_timeout_s: float
    max_body_bytes: int
    max_question_chars: int
