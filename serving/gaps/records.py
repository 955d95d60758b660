"""The backlog's values: an asking going in, gaps coming out. Bounded here, so that no row can be large."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from serving.answer.types import DeclineReason, RefusalCause, Route
from serving.answer.wire import Answer, Versions
from serving.gaps.errors import InvalidCursorError
from serving.gaps.likeness import question_hash
from serving.gaps.settings import GapsSettings, Questions

MAX_ID_CHARS = 200
MAX_NOTE_CHARS = 1_000
MAX_PAGE = 200

RETRY_PREFIX = "gap-retry-"
"""The request ids of questions that are asked again from the backlog: a second decline is no second asking."""


def storable(text: str, limit: int) -> str:
    """At most ``limit`` characters that every database takes: PostgreSQL has no NUL, and UTF-8 no lone surrogates."""
    return text[:limit].encode(errors="replace").decode().replace("\0", "\ufffd")


class PassageRef(BaseModel):
    """A passage that was retrieved: its id, and its score then."""

    model_config = ConfigDict(frozen=True)

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class Asking:
    """One declined question, as it is written. ``key`` is unique: writing it twice counts it once."""

    key: str
    question: str | None
    question_hash: str
    asked_at: datetime
    tenant: str | None
    request_id: str
    reason: DeclineReason
    cause: RefusalCause | None
    route_chosen: Route
    route_ran: Route
    versions: Versions
    passages: tuple[PassageRef, ...]

    @classmethod
    def of(cls, question: str, answer: Answer, *, tenant: str | None, at: datetime, settings: GapsSettings) -> Asking:
        """Raises ``ValueError`` when the answer is no decline."""
        if answer.decline is None:
            raise ValueError("only a declined answer is a knowledge gap")
        best = sorted(answer.passages, key=lambda passage: -passage.score)[: settings.max_passages]
        kept = settings.questions is Questions.KEEP
        return cls(
            key=uuid.uuid4().hex,
            question=storable(question, settings.max_question_chars) if kept else None,
            question_hash=question_hash(question),
            asked_at=at,
            tenant=None if tenant is None else storable(tenant, MAX_ID_CHARS),
            request_id=storable(answer.request_id, MAX_ID_CHARS),
            reason=answer.decline.reason,
            cause=answer.decline.cause,
            route_chosen=answer.route.chosen,
            route_ran=answer.route.ran,
            versions=short_versions(answer.versions),
            passages=tuple(PassageRef(id=storable(one.id, MAX_ID_CHARS), score=one.score) for one in best),
        )


def short_versions(versions: Versions) -> Versions:
    return Versions(**{name: storable(value, MAX_ID_CHARS) for name, value in versions.model_dump().items()})


class State(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


class Order(StrEnum):
    NEWEST = "newest"
    """The latest to come up for the first time, first."""
    MOST_ASKED = "most_asked"


class GapQuery(BaseModel):
    """Which gaps, in which order, from where on. ``state`` null is both."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: State | None = State.OPEN
    reason: DeclineReason | None = None
    order: Order = Order.NEWEST
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Field(max_length=128)] | None = None


class AskingOut(BaseModel):
    """One time that a question was declined. ``question`` is null where only its hash is kept."""

    model_config = ConfigDict(frozen=True)

    question: str | None
    question_hash: str
    asked_at: datetime
    request_id: str
    reason: DeclineReason
    cause: RefusalCause | None
    route_chosen: Route
    route_ran: Route
    versions: Versions
    passages: tuple[PassageRef, ...]


class Resolution(BaseModel):
    """Why a gap is closed: by a person with a note, or by an answer (its request id and versions)."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    note: str | None
    answered_request_id: str | None
    answered_versions: Versions | None


class GapOut(BaseModel):
    """A knowledge gap: a question and what asks the same. ``count`` askings between ``first_seen`` and ``last_seen``;
    ``latest`` is the last of them; times are UTC.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    state: State
    question: str | None
    question_hash: str
    tenant: str | None
    count: int
    first_seen: datetime
    last_seen: datetime
    retried_at: datetime | None
    resolution: Resolution | None
    latest: AskingOut | None


class GapPage(BaseModel):
    """Gaps, and where the next page begins: null on the last."""

    gaps: tuple[GapOut, ...]
    next_cursor: str | None


def encode_cursor(order: Order, place: Sequence[int]) -> str:
    return base64.urlsafe_b64encode(f"{order.value}:{':'.join(map(str, place))}".encode()).decode().rstrip("=")


def decode_cursor(order: Order, cursor: str) -> tuple[int, ...]:
    """The place that a page ended at. Raises :class:`InvalidCursorError`."""
    try:
        name, *numbers = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").split(":")
        place = tuple(map(int, numbers))
    except (binascii.Error, ValueError):
        name, place = "", ()
    wanted = 1 if order is Order.NEWEST else 2
    if name != order.value or len(place) != wanted or not all(0 <= number < 2**63 for number in place):
        raise InvalidCursorError("`cursor` is not one that a page in this order gave; leave it out to begin anew")
    return place
