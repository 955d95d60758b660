"""An answer's versions name what made it, also when a part is replaced while it is being made."""

from __future__ import annotations

import pickle
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from serving.answer.engine import Engine
from serving.answer.policy import Policy
from serving.answer.seams import Generation, Pair, Parts
from serving.answer.types import Claim, Deadline, Delta, Passage, Route, Routing, Scores, Verdict
from serving.answer.wire import Answer, Versions
from tests.unit.answer import fakes
from tests.unit.answer.test_engine import parts

KNOWN = Versions(settings="s", synthesizer="old", reranker="old", verifier="old", router="old")


class VersionedSynthesizer(fakes.FakeSynthesizer):
    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        async for delta in super().generate(request, deadline=deadline):
            yield replace(delta, version="synthesizer@b")


class VersionedReranker(fakes.FakeReranker):
    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
        return Scores(await super().score(query, documents, deadline=deadline), "reranker@b")


class VersionedVerifier(fakes.FakeVerifier):
    """The second call finds another one than the first."""

    versions = ("verifier@a", "verifier@b")

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        verdicts = await super().verify(pairs, deadline=deadline)
        version = self.versions[min(len(self.pairs) - len(pairs), len(self.versions) - 1)]
        return [replace(verdict, version=version) for verdict in verdicts]


class VersionedClassifier:
    def __init__(self, route: Route) -> None:
        self._route = route

    async def classify(self, question: str, *, deadline: Deadline) -> Routing:
        return Routing(self._route, "cue", version="router@b")


def versioned(route: Route = Route.SINGLE_PASS) -> Parts:
    made = parts()
    reply = VersionedSynthesizer("The tower was built in 1889 [1]. The museum opened in 1793 [2].")
    return replace(
        made,
        classifier=VersionedClassifier(route),
        synthesizer=reply,
        reranker=VersionedReranker(),
        verifier=VersionedVerifier(),
    )


async def ask(made: Parts) -> Answer:
    engine = Engine(
        made,
        Policy(),
        KNOWN,
        clock=time.monotonic,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        nonce=lambda: "c0ffee42",
    )
    deadline = Deadline.after(30.0, time.monotonic)
    return await engine.ask("When was the tower built?", request_id="r1", deadline=deadline)


async def test_each_part_is_named_as_it_was_when_it_was_asked() -> None:
    versions = (await ask(versioned())).versions
    assert (versions.synthesizer, versions.reranker, versions.router) == ("synthesizer@b", "reranker@b", "router@b")
    assert versions.verifier == "verifier@a, verifier@b"
    assert (versions.settings, versions.index) == ("s", "generation-1")


async def test_parts_that_say_nothing_are_named_as_they_are_known() -> None:
    versions = (await ask(parts())).versions
    assert (versions.synthesizer, versions.reranker, versions.verifier, versions.router) == ("old",) * 4


async def test_parts_that_were_not_asked_are_not_named() -> None:
    versions = (await ask(versioned(Route.SEARCH))).versions
    assert (versions.synthesizer, versions.reranker, versions.verifier) == ("", "", "")
    assert versions.router == "router@b"
    assert versions.index == "generation-1"
    nothing: list[Passage] = []
    found_nothing = replace(versioned(), retriever=fakes.FakeRetriever(nothing))
    versions = (await ask(found_nothing)).versions
    assert (versions.synthesizer, versions.reranker, versions.verifier) == ("", "", "")


@pytest.mark.parametrize("scores", [[], [0.5, 0.25]])
def test_scores_stay_what_they_are_between_processes(scores: list[float]) -> None:
    sent = pickle.loads(pickle.dumps(Scores(scores, "reranker@b")))
    assert sent == scores
    assert sent.version == "reranker@b"


class NothingBears:
    """Finds that no sentence bears on the question: there is nothing for the model to choose from."""

    async def relevant(
        self, question: str, claims: Sequence[Claim], passages: Sequence[Passage], *, deadline: Deadline
    ) -> list[bool]:
        return [False] * len(claims)


async def test_a_model_that_had_nothing_to_choose_from_is_not_named() -> None:
    answer = await ask(replace(versioned(), relevance=NothingBears()))
    assert answer.decline is not None
    assert answer.usage.completion_tokens == 0
    assert (answer.versions.synthesizer, answer.versions.verifier) == ("", "")
    assert answer.versions.reranker == "reranker@b"
