"""The Answer on the wire: one shape for HTTP, the CLI's ``--json`` and logs.

Offsets index ``text``, the clean answer. ``groundingChunks`` and ``groundingSupports`` follow Gemini's
``groundingMetadata`` (offsets are half-open UTF-8 **bytes**); every span also comes in code points and UTF-16 units,
named as such. ``passages`` is the context the model was given, in chunk order.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from serving.answer.types import (
    Citation,
    DeclineReason,
    Outcome,
    Passage,
    Reason,
    RefusalCause,
    Route,
)


class Wire(BaseModel):
    """Base of all wire objects: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Spans(Wire):
    """One half-open range in three units."""

    utf8: tuple[int, int]
    code_point: tuple[int, int]
    utf16: tuple[int, int]


class CitationOut(Wire):
    """A passage that entails the claim (0-based) and the verifier's score."""

    chunk: int
    score: float

    @classmethod
    def of(cls, citation: Citation) -> CitationOut:
        return cls(chunk=citation.chunk, score=round(citation.score, 4))


class ClaimOut(Wire):
    """A proven claim: ``text`` is exactly what ``span`` covers."""

    text: str
    span: Spans
    citations: tuple[CitationOut, ...]
    reason: Reason


class Segment(Wire):
    """Gemini's ``segment``: half-open UTF-8 byte offsets and the text between them."""

    startIndex: int
    endIndex: int
    text: str


class GroundingSupport(Wire):
    segment: Segment
    groundingChunkIndices: tuple[int, ...]
    confidenceScores: tuple[float, ...]


class WebChunk(Wire):
    uri: str
    title: str


class RetrievedContext(Wire):
    uri: str
    title: str
    text: str


class GroundingChunk(Wire):
    """``web`` for a passage with a URL, ``retrievedContext`` for one without."""

    web: WebChunk | None = None
    retrievedContext: RetrievedContext | None = None

    @model_serializer(mode="wrap")
    def _only_what_is_set(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # As in Gemini's own JSON, the member that does not apply is absent rather than null.
        return {name: value for name, value in serialise(self).items() if value is not None}


class Grounding(Wire):
    groundingChunks: tuple[GroundingChunk, ...] = ()
    groundingSupports: tuple[GroundingSupport, ...] = ()


class Dropped(Wire):
    """How many claims were dropped for a reason. Their text is never sent."""

    reason: Reason
    count: int


class Decline(Wire):
    reason: DeclineReason
    cause: RefusalCause | None = None
    message: str


class RouteOut(Wire):
    """The route the classifier chose, the one that ran, and the cue that decided."""

    chosen: Route
    ran: Route
    cue: str


class PassageOut(Wire):
    id: str
    title: str
    url: str | None
    source: str
    heading_path: tuple[str, ...]
    source_path: str | None
    repo_path: str | None
    commit_sha: str | None
    published_at: datetime | None
    text: str
    score: float

    @classmethod
    def of(cls, passage: Passage) -> PassageOut:
        return cls(
            id=passage.id,
            title=passage.title,
            url=passage.url,
            source=passage.source,
            heading_path=passage.heading_path,
            source_path=passage.source_path,
            repo_path=passage.repo_path,
            commit_sha=passage.commit_sha,
            published_at=passage.published_at,
            text=passage.text,
            score=round(passage.score, 4),
        )


class Usage(Wire):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    verified_pairs: int = 0


class Timings(Wire):
    """Milliseconds each stage took. ``verify`` overlaps ``synthesize``: they do not add up to ``total``."""

    route: float = 0.0
    retrieve: float = 0.0
    rerank: float = 0.0
    synthesize: float = 0.0
    verify: float = 0.0
    total: float = 0.0


class Versions(Wire):
    """What made this answer, each part by hash or name; empty for a part that was not asked."""

    settings: str = ""
    prompt: str = ""
    synthesizer: str = ""
    reranker: str = ""
    verifier: str = ""
    router: str = ""
    index: str = ""


class Answer(Wire):
    """The final answer. ``decline`` is null unless declined; declines carry no claims and no supports."""

    request_id: str
    outcome: Outcome
    text: str = ""
    marked_text: str = ""
    verified: bool = False
    truncated: bool = False
    claims: tuple[ClaimOut, ...] = ()
    grounding: Grounding = Grounding()
    dropped: tuple[Dropped, ...] = ()
    decline: Decline | None = None
    route: RouteOut
    passages: tuple[PassageOut, ...] = ()
    usage: Usage = Usage()
    timings_ms: Timings = Timings()
    versions: Versions = Versions()
