"""Reference judges that run with no model: small, correct by their own definition, and documented as such.

They stand in for trained ones behind the same seams, and are what a trained one must beat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from serving.answer.prompt import premise
from serving.answer.seams import Pair
from serving.answer.text import content_words, stemmed_words
from serving.answer.types import Claim, Deadline, Passage, Reason, Verdict


class OverlapVerifier:
    """Entailed when enough of the claim's content words stand in the premise.

    The score is the share of the claim's content words (stems, repeats counted once) found in the premise. Strong on
    extractive answers, a coin flip on adversarial ones: it cannot tell who did what to whom.
    """

    name = "overlap"

    def __init__(self, threshold: float = 0.85) -> None:
        if not 0.0 < threshold <= 1.0:
            raise ValueError(f"threshold must be in (0, 1], not {threshold}")
        self._threshold = threshold

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        del deadline  # word counting is over before any deadline could pass
        return [self._verdict(pair) for pair in pairs]

    def _verdict(self, pair: Pair) -> Verdict:
        claim = set(content_words(pair.claim))
        if not claim:
            return Verdict(0.0, Reason.NOT_ENTAILED)
        score = len(claim & set(content_words(pair.premise))) / len(claim)
        return Verdict(score, Reason.ENTAILED if score >= self._threshold else Reason.NOT_ENTAILED)


class Frequencies(Protocol):
    """How many passages of a corpus hold each of some words."""

    async def __call__(self, words: Sequence[str], *, deadline: Deadline) -> Sequence[int]: ...


class RareWordRelevance:
    """A claim bears on a question when it shares at least one of the question's rarer words.

    The rarer words are the half (rounded up) of the question's content words that fewest passages hold. A passage's
    title and headings speak for the claims that cite it: docstrings rarely repeat their subject. What a claim leans on
    speaks for it too. A question without a content word is borne on by everything.

    ``frequencies`` counts in the whole corpus. Without it the passages at hand are counted, which takes the subject
    that they all share for a common word.
    """

    def __init__(self, frequencies: Frequencies | None = None) -> None:
        self._frequencies = frequencies

    async def relevant(
        self, question: str, claims: Sequence[Claim], passages: Sequence[Passage], *, deadline: Deadline
    ) -> list[bool]:
        words = asked_about(question)
        if self._frequencies is None:
            counts = Counter(stem for passage in passages for stem in set(content_words(premise(passage))))
            held: Sequence[int] = [counts[stem] for stem in words]
        else:
            held = await self._frequencies(list(words.values()), deadline=deadline)
        rare = rarer_half(list(words), held)
        if not rare:
            return [True] * len(claims)
        heads = [set(content_words(" ".join((passage.title, *passage.heading_path)))) for passage in passages]
        return [
            bool(rare & set(content_words(f"{claim.context} {claim.text}")))
            or any(rare & heads[chunk] for chunk in claim.chunks)
            for claim in claims
        ]


# Words of the asking, not of what is asked about.
_ASKING = frozenset(content_words("tell explain describe define list name give show purpose mean meaning know please"))


def asked_about(question: str) -> dict[str, str]:
    """The content words of a question in order: stem to word as written, words of the asking left out."""
    return {stem: word for word, stem in stemmed_words(question) if stem not in _ASKING}


def rarer_half(words: Sequence[str], held: Sequence[int]) -> set[str]:
    """The half of ``words``, rounded up, that are ``held`` by fewest; earlier ones first on a tie."""
    by_rarity = sorted(range(len(words)), key=lambda at: held[at])
    return {words[at] for at in by_rarity[: (len(words) + 1) // 2]}
