"""What Bespoke-MiniCheck-7B is asked, and what its answer comes to. Pure.

Source: https://huggingface.co/bespokelabs/Bespoke-MiniCheck-7B and MiniCheck's code. The model writes one token; the
score is the chance of a yes. A claim of several sentences is supported as well as its least supported one, and a
sentence as well as the best chunk of the document supports it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from serving.answer.types import Message, PairScore

SYSTEM = (
    "Determine whether the provided claim is consistent with the corresponding document. Consistency in this context "
    "implies that all information presented in the claim is substantiated by the document. If not, it should be "
    "considered inconsistent. Please assess the claim's consistency with the document by responding with either "
    '"Yes" or "No".'
)

WINDOW = 32_768
"""Tokens that the model reads at most."""

CHUNK = WINDOW - 300
"""Tokens of a document that its authors let it read at once."""

TOP = 20
"""How many of the likeliest first tokens are looked at: as many as vLLM tells."""


def messages(document: str, claim: str) -> tuple[Message, ...]:
    return Message("system", SYSTEM), Message("user", f"Document: {document}\nClaim: {claim}")


def chance_of_yes(first: Iterable[tuple[str, float]]) -> float:
    """The chance of a yes, in any spelling, from the likeliest first tokens and their log-probabilities."""
    return min(1.0, math.fsum(math.exp(logprob) for text, logprob in first if text.strip().lower() == "yes"))


def settled(chances: Sequence[Sequence[float]], *, truncated: bool) -> PairScore:
    """A pair's score from those of its sentences, each over the document's chunks: the least of their best.

    Nothing was asked, no score: the claim or the document says nothing.
    """
    best = [max(of_sentence) for of_sentence in chances if of_sentence]
    if not best:
        return PairScore(0.0, 0, None, truncated)
    score = min(best)
    weakest = chances[best.index(score)]
    return PairScore(score, len(weakest), list(weakest).index(score), truncated)
