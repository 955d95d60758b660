"""The values the contract is written in: passages, spans, claims, verdicts, routes.

Everything here is immutable and free of I/O. What goes over the wire is in :mod:`serving.answer.wire`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Route(StrEnum):
    """How much evidence a question gets. It never decides whether claims need proof."""

    SEARCH = "search"
    SINGLE_PASS = "single_pass"  # noqa: S105
    AGENTIC = "agentic"


class Outcome(StrEnum):
    ANSWERED = "answered"
    DECLINED = "declined"
    SEARCH = "search"


class DeclineReason(StrEnum):
    """Why a question was declined. Stable codes: clients and the gap backlog key on them."""

    NOT_IN_PASSAGES = "not_in_passages"
    NOTHING_RETRIEVED = "nothing_retrieved"
    NOTHING_PROVEN = "nothing_proven"
    REFUSED = "refused"


class RefusalCause(StrEnum):
    """Why an answer that was produced was rejected here."""

    UNGROUNDED = "ungrounded"
    FABRICATED_CITATION = "fabricated_citation"


class Reason(StrEnum):
    """Why a claim was kept (``entailed``) or dropped (every other)."""

    ENTAILED = "entailed"
    NOT_ENTAILED = "not_entailed"
    BELOW_FLOOR = "below_floor"
    NUMBER_MISMATCH = "number_mismatch"
    UNIT_MISMATCH = "unit_mismatch"
    DATE_MISMATCH = "date_mismatch"
    NAME_MISMATCH = "name_mismatch"
    NEGATION_MISMATCH = "negation_mismatch"
    FOREIGN_URL = "foreign_url"
    POLARITY_MISMATCH = "polarity_mismatch"
    QUANTIFIER_MISMATCH = "quantifier_mismatch"
    COMPARATIVE_MISMATCH = "comparative_mismatch"
    ROLE_MISMATCH = "role_mismatch"
    IRRELEVANT = "irrelevant"
    UNCITED = "uncited"
    NOT_A_CLAIM = "not_a_claim"
    FABRICATED_CITATION = "fabricated_citation"
    LOST_CONTEXT = "lost_context"
    TRUNCATED = "truncated"
    DEADLINE = "deadline"
    REPEATED = "repeated"


class Span(NamedTuple):
    """A half-open range of UTF-8 **byte** offsets into a text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of retrieved text and where it came from. ``id`` is a hash of its content and origin.

    ``source`` is what counts as one voice when passages are consolidated: a site, a repository, a package.
    """

    id: str
    text: str
    title: str = ""
    url: str | None = None
    source: str = ""
    heading_path: tuple[str, ...] = ()
    source_path: str | None = None
    repo_path: str | None = None
    commit_sha: str | None = None
    published_at: datetime | None = None
    score: float = 0.0

    def scored(self, score: float) -> Passage:
        return replace(self, score=score)


@dataclass(frozen=True, slots=True)
class Claim:
    """One atomic statement of a reply.

    ``span`` points into the clean text it was parsed to, terminator included; ``chunks`` are the 0-based numbers of the
    passages it cites, ascending and without repeats; ``fabricated`` are the cited numbers that name no passage, as
    written. ``complete`` is false for a last sentence that the end of the reply cut off. ``context`` is what must be
    read before ``text`` for it to mean what it says (the sentence it leans on, a row's header): judged with it, never
    shown by it.
    """

    text: str
    span: Span
    chunks: tuple[int, ...] = ()
    fabricated: tuple[str, ...] = ()
    complete: bool = True
    context: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a claim against a passage: a score in [0, 1], a reason, and the words that decided it.

    ``contradiction`` is how much the passage says the opposite, in [0, 1], where the verifier tells that apart from
    saying nothing. ``version`` names the verifier that said it; empty when it never changes, or none was asked.
    """

    score: float
    reason: Reason
    words: tuple[str, ...] = ()
    version: str = field(default="", compare=False)
    contradiction: float | None = None


class Scores(list[float]):
    """A reranker's scores, one a document. ``version`` names the reranker that gave them."""

    def __init__(self, scores: Iterable[float], version: str) -> None:
        super().__init__(scores)
        self.version = version

    def __reduce__(self) -> tuple[type[Scores], tuple[list[float], str]]:
        return Scores, (list(self), self.version)


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that entails a claim, by 0-based number, with the verifier's score."""

    chunk: int
    score: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim after checking: proven by ``citations`` when ``reason`` is ``entailed``, else dropped for ``reason``.

    ``verdicts`` are what was said of it against each cited passage alone, by 0-based number, ascending.
    """

    claim: Claim
    reason: Reason
    citations: tuple[Citation, ...] = ()
    verdicts: tuple[tuple[int, Verdict], ...] = ()

    @property
    def proven(self) -> bool:
        return self.reason is Reason.ENTAILED


@dataclass(frozen=True, slots=True)
class Support:
    """A span of the answer text, the 0-based chunks that back it, and a confidence for each."""

    span: Span
    chunks: tuple[int, ...]
    confidences: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Routing:
    """The classifier's choice and the cue that decided it, for people to read.

    ``version`` names the classifier; empty when it never changes.
    """

    route: Route
    cue: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat prompt."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply as the engine yields it. The last one says why it stopped and what was used.

    ``version`` names the weights that wrote it, which are the same for a whole reply; empty when they never change.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class Phases:
    """Where the time of a call of an encoder went, in seconds: reading tokens, waiting, the passes that held its rows.

    ``tokens`` are those of its rows; ``padded_tokens`` the slots that they filled, with what padded them to the longest
    row beside them.
    """

    tokenise_s: float = 0.0
    queue_s: float = 0.0
    compute_s: float = 0.0
    total_s: float = 0.0
    tokens: int = 0
    padded_tokens: int = 0

    def __add__(self, later: Phases) -> Phases:
        """Those of two calls that were made one after the other."""
        return Phases(
            tokenise_s=self.tokenise_s + later.tokenise_s,
            queue_s=self.queue_s + later.queue_s,
            compute_s=self.compute_s + later.compute_s,
            total_s=self.total_s + later.total_s,
            tokens=self.tokens + later.tokens,
            padded_tokens=self.padded_tokens + later.padded_tokens,
        )


@dataclass(frozen=True, slots=True)
class PairScore:
    """A document's score in [0, 1] beside a claim or query: that of ``best_chunk``, the best of the ``chunks`` pieces
    that it was read in. ``truncated`` says that some of it was not read. No piece: one of the texts says nothing.
    ``contradiction`` is the highest of any piece, where the model has a label for it.
    """

    score: float
    chunks: int = 1
    best_chunk: int | None = 0
    truncated: bool = False
    contradiction: float | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A score for each pair, in order, and where the time went. ``version`` names what gave them, where it says so."""

    pairs: tuple[PairScore, ...]
    phases: Phases
    version: str = field(default="", compare=False)


Clock = Callable[[], float]
"""Seconds from an arbitrary origin, never going back."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on a clock by which a question must be answered. Cross a process boundary as seconds remaining."""

    at: float
    clock: Clock = field(repr=False, compare=False)

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> Deadline:
        return cls(clock() + seconds, clock)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        return self.clock() >= self.at
