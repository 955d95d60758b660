"""One line of the answer log: what an answer was, without the text of its passages.

A passage is named by its id and a hash of its text, so that an index at hand can give the text back. A question is
kept, or only its hash. The hash of a short question can be guessed: it keeps a log free of personal text, not secret.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from serving.answer.types import DeclineReason, Outcome, RefusalCause
from serving.answer.wire import Answer, CitationOut, Dropped, RouteOut, Timings, Usage, Versions, Wire


class LoggedPassage(Wire):
    id: str
    sha256: str
    score: float


class LoggedClaim(Wire):
    """``text`` is null where questions are hashed: an answer may repeat its question."""

    text: str | None
    citations: tuple[CitationOut, ...]


class Logged(Wire):
    """``question`` is null where only ``question_sha256`` is kept."""

    at: datetime
    request_id: str
    question: str | None
    question_sha256: str
    outcome: Outcome
    verified: bool
    truncated: bool
    decline: DeclineReason | None
    cause: RefusalCause | None
    claims: tuple[LoggedClaim, ...]
    dropped: tuple[Dropped, ...]
    passages: tuple[LoggedPassage, ...]
    route: RouteOut
    usage: Usage
    timings_ms: Timings
    versions: Versions


def logged(question: str, answer: Answer, *, at: datetime, keep: bool) -> Logged:
    """The line of an answer. ``keep`` says whether the words of the question and of the answer may be written down."""
    return Logged(
        at=at,
        request_id=answer.request_id,
        question=question if keep else None,
        question_sha256=digest(" ".join(question.split()).casefold()),
        outcome=answer.outcome,
        verified=answer.verified,
        truncated=answer.truncated,
        decline=answer.decline.reason if answer.decline else None,
        cause=answer.decline.cause if answer.decline else None,
        claims=tuple(
            LoggedClaim(text=claim.text if keep else None, citations=claim.citations) for claim in answer.claims
        ),
        dropped=answer.dropped,
        passages=tuple(LoggedPassage(id=p.id, sha256=digest(p.text), score=p.score) for p in answer.passages),
        route=answer.route,
        usage=answer.usage,
        timings_ms=answer.timings_ms,
        versions=answer.versions,
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
