"""Scripted stand-ins behind the seams, for tests of the engine and its parts. None answers for a real model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from serving.answer.seams import Generation, Pair
from serving.answer.types import Claim, Deadline, Delta, Passage, Reason, Route, Routing, Verdict


class FakeClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class FakeClassifier:
    def __init__(self, route: Route = Route.SINGLE_PASS) -> None:
        self._route = route

    async def classify(self, question: str, *, deadline: Deadline) -> Routing:
        return Routing(self._route, "scripted")


class FakeRetriever:
    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = list(passages)
        self.lexical_calls = self.hybrid_calls = 0

    async def lexical(self, query: str, limit: int, *, deadline: Deadline) -> list[Passage]:
        self.lexical_calls += 1
        return self._passages[:limit]

    async def hybrid(self, query: str, limit: int, *, deadline: Deadline) -> list[Passage]:
        self.hybrid_calls += 1
        return self._passages[:limit]

    async def version(self) -> str:
        return "generation-1"


class FakeReranker:
    """Keeps the order it is given."""

    def __init__(self) -> None:
        self.calls = 0

    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
        self.calls += 1
        return [1.0 / (1 + rank) for rank in range(len(documents))]


class FakeSynthesizer:
    """Writes a scripted reply, in deltas of ``step`` characters; ``stall_s`` is slept before each."""

    def __init__(self, reply: str, *, step: int = 7, finish_reason: str = "stop", stall_s: float = 0.0) -> None:
        self._reply = reply
        self._step = step
        self._finish_reason = finish_reason
        self._stall_s = stall_s
        self.requests: list[Generation] = []
        self.closed = 0

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        try:
            for at in range(0, len(self._reply), self._step):
                await asyncio.sleep(self._stall_s)
                yield Delta(self._reply[at : at + self._step])
            yield Delta("", finish_reason=self._finish_reason, prompt_tokens=100, completion_tokens=20)
        finally:
            self.closed += 1


class FakeVerifier:
    """Entails exactly the (word in premise, word in claim) pairs it is told, and records what it was asked."""

    def __init__(self, entails: dict[str, str] | None = None, *, error: Exception | None = None, stall_s: float = 0):
        self._entails = entails
        self._error = error
        self._stall_s = stall_s
        self.pairs: list[Pair] = []

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        self.pairs.extend(pairs)
        await asyncio.sleep(self._stall_s)
        if self._error:
            raise self._error
        return [self._verdict(pair) for pair in pairs]

    def _verdict(self, pair: Pair) -> Verdict:
        if self._entails is None:
            return Verdict(0.9, Reason.ENTAILED)
        if any(claim in pair.claim and premise in pair.premise for claim, premise in self._entails.items()):
            return Verdict(0.9, Reason.ENTAILED)
        return Verdict(0.1, Reason.NOT_ENTAILED)


class FakeRelevance:
    def __init__(self, *, irrelevant: str | None = None) -> None:
        self._irrelevant = irrelevant

    async def relevant(
        self, question: str, claims: Sequence[Claim], passages: Sequence[Passage], *, deadline: Deadline
    ) -> list[bool]:
        return [self._irrelevant is None or self._irrelevant not in claim.text for claim in claims]


class FakeCounter:
    """One token a word."""

    def count(self, text: str) -> int:
        return len(text.split())
