"""Proving claims: guards, then the verifier, and the smallest set of cited passages that suffices.

A claim is proven fact by fact (:mod:`serving.answer.conjuncts`). A set of passages proves it when each fact is entailed
by one of them or by all of them read together. Single passages are tried first, then the whole cited set, and only when
that holds its subsets, smallest first: so no set is ever cited of which a part would have done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from serving.answer.conjuncts import facts
from serving.answer.guards.rejecting import Reading, reject
from serving.answer.prompt import premise
from serving.answer.seams import Pair, Verifier
from serving.answer.types import Citation, Claim, Deadline, Judged, Passage, Reason, Verdict
from serving.answer.urls import foreign_urls

JOINED = "\n\n"
MOST_CITATIONS = 3
MOST_CANDIDATES = 5
"""Of more cited passages than this, the joint case looks at those that score best alone: at most 20 sets a claim."""

HEADER_CELLS = " | "

Chunks = tuple[int, ...]


class _Question(NamedTuple):
    """Whether passages, read together, entail a fact of a claim."""

    claim: int
    fact: int
    chunks: Chunks


def hypothesis(context: str, fact: str) -> str:
    """What a verifier reads of a claim: the fact after what it leans on, or below the header row it stands under."""
    separator = "\n" if HEADER_CELLS in context else " "
    return f"{context}{separator}{fact}".lstrip()


class Proving:
    """The proofs of some claims over the premises of their passages. One instance a check."""

    def __init__(
        self, claims: Sequence[Claim], passages: Sequence[Passage], verifier: Verifier, deadline: Deadline
    ) -> None:
        self._claims = claims
        self._facts = [facts(claim.text) for claim in claims]
        self._passages = passages
        self._premises = [premise(passage) for passage in passages]
        self._verifier = verifier
        self._deadline = deadline
        self._evidence: dict[Chunks, Reading] = {}
        self._verdicts: dict[_Question, Verdict] = {}
        self.pairs = 0

    async def judge(self, pending: Sequence[int]) -> dict[int, Judged]:
        """Judges the claims numbered ``pending``. Raises what the verifier raises."""
        await self._ask(self._questions((at, (chunk,)) for at in pending for chunk in self._claims[at].chunks))
        judged = {at: proof for at in pending if (proof := self._proof(at, 1))}
        split = [at for at in pending if at not in judged and len(self._claims[at].chunks) > 1]
        await self._ask(self._questions((at, self._claims[at].chunks) for at in split))
        split = [at for at in split if self._score(at, self._claims[at].chunks) is not None]
        for size in range(2, MOST_CITATIONS + 1):
            await self._ask(self._questions((at, chunks) for at in split for chunks in self._candidates(at, size)))
            judged |= {at: proof for at in split if (proof := self._proof(at, size))}
            split = [at for at in split if at not in judged]
        return {at: judged.get(at) or self._rejected(at) for at in pending}

    def _questions(self, sets: Iterable[tuple[int, Chunks]]) -> list[_Question]:
        """The facts still open over each set: what one of its passages entails alone need not be asked again."""
        return [
            question
            for at, chunks in sets
            for fact in range(len(self._facts[at]))
            if (question := _Question(at, fact, chunks)) not in self._verdicts
            and (len(chunks) == 1 or self._alone(at, fact, chunks) is None)
        ]

    async def _ask(self, questions: Sequence[_Question]) -> None:
        """Guards first, then the verifier on what the guards let by, in one batch."""
        asked: list[_Question] = []
        pairs: list[Pair] = []
        for question in questions:
            claim, fact = self._claims[question.claim], self._facts[question.claim][question.fact]
            verdict = self._guard(claim, fact, question.chunks)
            if verdict is not None:
                self._verdicts[question] = verdict
                continue
            asked.append(question)
            evidence = JOINED.join(self._premises[chunk] for chunk in question.chunks)
            pairs.append(Pair(evidence, hypothesis(claim.context, fact)))
        if pairs:
            self.pairs += len(pairs)
            verdicts = await self._verifier.verify(pairs, deadline=self._deadline)
            self._verdicts.update(zip(asked, verdicts, strict=True))

    def _guard(self, claim: Claim, fact: str, chunks: Chunks) -> Verdict | None:
        foreign = foreign_urls(fact, [self._passages[chunk] for chunk in chunks])
        if foreign:
            return Verdict(0.0, Reason.FOREIGN_URL, tuple(foreign))
        if chunks not in self._evidence:
            self._evidence[chunks] = Reading(JOINED.join(self._premises[chunk] for chunk in chunks))
        # The words of a table's header label its cells: they state nothing that evidence would have to say.
        said = (fact, "" if HEADER_CELLS in claim.context else claim.context)
        for text in filter(None, said):
            rejection = reject(text, self._evidence[chunks])
            if rejection is not None:
                return Verdict(0.0, rejection.reason, rejection.words)
        return None

    def _alone(self, at: int, fact: int, chunks: Chunks) -> float | None:
        """The best score by which one of ``chunks`` entails the fact, None when none does."""
        found = [self._verdicts.get(_Question(at, fact, (chunk,))) for chunk in chunks]
        return max((verdict.score for verdict in found if verdict and verdict.reason is Reason.ENTAILED), default=None)

    def _score(self, at: int, chunks: Chunks) -> float | None:
        """How well a set proves a claim: as well as its weakest fact, None when a fact is left unproven."""
        scores: list[float] = []
        for fact in range(len(self._facts[at])):
            score = self._alone(at, fact, chunks)
            joint = self._verdicts.get(_Question(at, fact, chunks))
            if score is None and joint is not None and joint.reason is Reason.ENTAILED:
                score = joint.score
            if score is None:
                return None
            scores.append(score)
        return min(scores)

    def _candidates(self, at: int, size: int) -> Iterable[Chunks]:
        """The subsets of a size to try, of the passages that score best alone on some fact."""
        chunks = self._claims[at].chunks
        best = sorted(chunks, key=lambda chunk: -max(self._single(at, chunk)))[:MOST_CANDIDATES]
        return combinations(sorted(best), size)

    def _single(self, at: int, chunk: int) -> list[float]:
        return [self._verdicts[_Question(at, fact, (chunk,))].score for fact in range(len(self._facts[at]))]

    def _proof(self, at: int, size: int) -> Judged | None:
        """The claim proven by its best-scoring set of a size, the lowest numbers on a tie; None when none proves it."""
        sets = ((chunk,) for chunk in self._claims[at].chunks) if size == 1 else self._candidates(at, size)
        proofs = [(score, chunks) for chunks in sets if (score := self._score(at, chunks)) is not None]
        if not proofs:
            return None
        score, chunks = max(proofs, key=lambda proof: (proof[0], [-chunk for chunk in proof[1]]))
        citations = tuple(Citation(chunk, score) for chunk in chunks)
        return Judged(self._claims[at], Reason.ENTAILED, citations, self._by_passage(at))

    def _by_passage(self, at: int) -> tuple[tuple[int, Verdict], ...]:
        """Each cited passage's verdict on the claim: that on the fact it supports least, contradicted as its worst."""

        def verdict(chunk: int) -> Verdict:
            of_facts = [self._verdicts[_Question(at, fact, (chunk,))] for fact in range(len(self._facts[at]))]
            return replace(min(of_facts, key=_worth), contradiction=strongest(of_facts))

        return tuple((chunk, verdict(chunk)) for chunk in self._claims[at].chunks)

    def _rejected(self, at: int) -> Judged:
        """Drops a claim for the reason of the passage that came nearest to proving it."""
        by_passage = self._by_passage(at)
        nearest = max((verdict for _, verdict in by_passage), key=_worth, default=Verdict(0.0, Reason.UNCITED))
        reason = Reason.NOT_ENTAILED if nearest.reason is Reason.ENTAILED else nearest.reason
        return Judged(self._claims[at], reason, verdicts=by_passage)


def strongest(verdicts: Iterable[Verdict]) -> float | None:
    """The highest contradiction of any, None where none tells of one."""
    return max((one.contradiction for one in verdicts if one.contradiction is not None), default=None)


def _worth(verdict: Verdict) -> tuple[bool, float]:
    return verdict.reason is Reason.ENTAILED, verdict.score
