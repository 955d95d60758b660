"""The seams: what the engine asks of the world. Async, batch-shaped where the model is, each with a deadline.

Every seam has a small reference implementation that runs with no model (rules, word overlap), a real one in
``models`` or ``serving.retrieval``, and a handle-backed one for Ray Serve. The engine cannot tell them apart.

An implementation that cannot answer raises an :class:`~serving.answer.errors.AnswerError`: something broke. Silence,
an empty list or a low score are judgements, never failures.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from serving.answer.types import Claim, Deadline, Delta, Message, Passage, Routing, Verdict


class Classifier(Protocol):
    """Chooses the route of a question before any model runs."""

    async def classify(self, question: str, *, deadline: Deadline) -> Routing: ...


class Retriever(Protocol):
    """Finds passages, best first, each with its score."""

    async def lexical(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        """BM25 alone: no model is touched."""
        ...

    async def hybrid(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        """BM25 and embeddings, fused."""
        ...

    async def version(self) -> str:
        """What identifies the index generation that answers now."""
        ...


class Reranker(Protocol):
    """Scores documents against one query in [0, 1]; higher is more relevant. ``len(result) == len(documents)``."""

    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Generation:
    """One request to a synthesizer.

    ``grammar`` is a regular expression that the whole reply must match, ``schema`` a JSON schema, as JSON; without
    either the text is free. ``max_tokens`` bounds the reply; ``temperature`` 0 is greedy. Raises ValueError when given
    both.
    """

    messages: tuple[Message, ...]
    request_id: str
    max_tokens: int
    temperature: float = 0.0
    grammar: str | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        if self.grammar is not None and self.schema is not None:
            raise ValueError("a reply is held to a grammar or to a schema, not to both: give one of them")


class Synthesizer(Protocol):
    """Writes a reply as text deltas. Closing the iterator (or cancelling its consumer) aborts the generation."""

    def generate(self, request: Generation, *, deadline: Deadline) -> AsyncIterator[Delta]: ...


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise (a passage as :func:`serving.answer.prompt.premise` renders it) and a claim to check against it."""

    premise: str
    claim: str


class Verifier(Protocol):
    """Says, for each pair, whether the premise entails the claim. ``len(result) == len(pairs)``."""

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> Sequence[Verdict]: ...


class Relevance(Protocol):
    """Says, for each claim, whether it bears on the question. ``len(result) == len(claims)``.

    ``passages`` is the context the model was given, in chunk order: a claim leans on the titles of what it cites, and
    what is rare is judged among it.
    """

    async def relevant(
        self, question: str, claims: Sequence[Claim], passages: Sequence[Passage], *, deadline: Deadline
    ) -> Sequence[bool]: ...


class TokenCounter(Protocol):
    """Counts the tokens of a text as the synthesizer's tokenizer would. Synchronous: it must be cheap."""

    def count(self, text: str) -> int: ...


class Language(Protocol):
    """Names the language of a text (``"de"``), ``"en"`` in doubt. Synchronous: it must be cheap."""

    def __call__(self, text: str, /) -> str: ...


def english(_text: str) -> str:
    """Takes every text for English."""
    return "en"


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of, one for each seam."""

    classifier: Classifier
    retriever: Retriever
    reranker: Reranker
    synthesizer: Synthesizer
    verifier: Verifier
    relevance: Relevance
    counter: TokenCounter
    language: Language = english
