"""What calls of a model on its own come to: rerank, check, embeddings. And what they may cost, before any work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from serving.answer.types import Citation, Phases, Reason, Scored, Span

_BYTES_A_TOKEN = 3
"""Text has four bytes of UTF-8 a token or more in English, about three in most languages: a ceiling, not an average."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """A score for each document, in their order, by the model named."""

    scored: Scored
    model: str

    def best(self, limit: int | None) -> list[int]:
        """The documents' numbers, best first, the earlier one first among equals; ``limit`` at most."""
        scores = [pair.score for pair in self.scored.pairs]
        return sorted(range(len(scores)), key=lambda index: (-scores[index], index))[:limit]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector for each text, in their order: ``dimension`` little-endian 32-bit floats of a unit vector."""

    vectors: tuple[bytes, ...]
    dimension: int
    phases: Phases
    model: str


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A sentence of a text, where it stands in it (UTF-8 bytes), and what the facts say of it.

    ``score`` is that of its citations when it is proven, else the best that one fact gives it; ``contradiction`` the
    most that one fact contradicts it, where the verifier tells. A claim that states
    nothing is not ``required`` to be grounded.
    """

    text: str
    span: Span
    reason: Reason
    score: float
    citations: tuple[Citation, ...] = ()
    words: tuple[str, ...] = ()
    contradiction: float | None = None

    @property
    def required(self) -> bool:
        return self.reason is not Reason.NOT_A_CLAIM


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text's claims, in order. ``chunks`` counts the pieces of facts that were read, ``truncated`` says that some of
    a fact was not.
    """

    claims: tuple[CheckedClaim, ...]
    pairs: int
    chunks: int
    truncated: bool
    phases: Phases
    model: str

    @property
    def support(self) -> float:
        """The share of the claims that need grounding which are proven; 1 when none does."""
        required = [claim for claim in self.claims if claim.required]
        return sum(claim.reason is Reason.ENTAILED for claim in required) / len(required) if required else 1.0


def ceiling(texts: Iterable[str]) -> int:
    """The most tokens that ``texts`` are, without counting them."""
    return sum(len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN + 1 for text in texts)


def pairs_ceiling(documents: Sequence[str], beside: Sequence[str]) -> int:
    """The most tokens of every document read beside every one of ``beside``."""
    return len(beside) * ceiling(documents) + len(documents) * ceiling(beside)
