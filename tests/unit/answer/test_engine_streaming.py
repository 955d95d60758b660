"""The engine as a stream: claims come when they are proven, and what was shown stays shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.answer.errors import DeadlineExceededError, UnavailableError
from serving.answer.events import Event, Finished, Found, Proven
from serving.answer.pacing import LEAST_REPLY
from serving.answer.seams import Generation, Pair, Parts
from serving.answer.types import Deadline, Delta, Passage, Verdict
from tests.unit.answer.fakes import FakeReranker, FakeRetriever, FakeSynthesizer, FakeVerifier
from tests.unit.answer.test_engine import REPLY, engine, parts

QUESTION = "When was the tower built?"


def within(seconds: float = 5.0) -> Deadline:
    return Deadline.after(seconds, time.monotonic)


async def all_events(made: Parts, **policy: Any) -> list[Event]:
    return [event async for event in engine(made, **policy).events(QUESTION, request_id="r", deadline=within())]


class FakeSynthesizerInSteps(FakeSynthesizer):
    """Writes its pieces one by one, each when it is told to go on."""

    def __init__(self, *pieces: str) -> None:
        super().__init__("")
        self._pieces = pieces
        self.go = asyncio.Semaphore(0)
        self.written = 0

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        try:
            for piece in self._pieces:
                await self.go.acquire()
                self.written += 1
                yield Delta(piece)
            yield Delta("", finish_reason="stop", prompt_tokens=100, completion_tokens=20)
        finally:
            self.closed += 1


PIECES = ("The tower was built in 1889 [1]. The museum opened in ", "1793 [2]. The river flows to the ", "sea [3].")


async def test_a_claim_is_told_while_the_next_is_being_written() -> None:
    synthesizer = FakeSynthesizerInSteps(*PIECES)
    events = engine(parts(synthesizer=synthesizer), on_fabrication="drop").events(
        QUESTION, request_id="r", deadline=within()
    )
    told = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Proven):
                told.append((event.text, synthesizer.written))
            if isinstance(event, Found | Proven):
                synthesizer.go.release()
    assert told == [
        ("The tower was built in 1889.", 1),
        ("The museum opened in 1793.", 2),
        ("The river flows to the sea.", 3),
    ]


async def test_a_claim_that_a_later_citation_could_refuse_waits_for_the_end() -> None:
    events = await all_events(parts(f"{REPLY} It is tall [9]."))
    assert not any(isinstance(event, Proven) for event in events)
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.outcome == "declined"


async def test_a_slow_reader_holds_nothing_up() -> None:
    synthesizer = FakeSynthesizer("".join(PIECES))
    verifier = FakeVerifier()
    events = engine(parts(synthesizer=synthesizer, verifier=verifier), on_fabrication="drop").events(
        QUESTION, request_id="r", deadline=within()
    )
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Proven):
                break
        await asyncio.sleep(0.05)  # nobody asks for the next event
        assert synthesizer.closed == 1
        assert len(verifier.pairs) == 3


@pytest.mark.parametrize("after", ["Found", "Proven"])
async def test_a_reader_who_leaves_frees_the_synthesizer(after: str) -> None:
    synthesizer = FakeSynthesizerInSteps(*PIECES)
    synthesizer.go.release()
    events = engine(parts(synthesizer=synthesizer), on_fabrication="drop").events(
        QUESTION, request_id="r", deadline=within()
    )
    async with aclosing(events):
        async for event in events:
            if type(event).__name__ == after:
                break
    assert synthesizer.closed == (after == "Proven")
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_verifier_that_breaks_ends_the_question_at_once() -> None:
    synthesizer = FakeSynthesizerInSteps(*PIECES)
    synthesizer.go.release()
    made = parts(synthesizer=synthesizer, verifier=FakeVerifier(error=UnavailableError("down")))
    with pytest.raises(UnavailableError):
        await asyncio.wait_for(all_events(made), 2)
    assert (synthesizer.written, synthesizer.closed) == (1, 1)


async def test_a_fabricated_citation_under_a_grammar_is_an_incident_once_claims_were_told() -> None:
    made = parts(f"{REPLY} It is tall [9].")
    told: list[Event] = []

    async def listen() -> None:
        async for event in engine(made, grammar="markers").events(QUESTION, request_id="r", deadline=within()):
            told.append(event)  # noqa: PERF401 (what came before the error counts)

    with pytest.raises(UnavailableError, match="grammar"):
        await listen()
    assert [event.text for event in told if isinstance(event, Proven)] == [
        "The tower was built in 1889.",
        "The museum opened in 1793.",
    ]


async def test_what_was_told_before_the_deadline_is_in_the_answer() -> None:
    class FakeVerifierThatStalls(FakeVerifier):
        async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
            if "museum" in pairs[0].claim:
                await asyncio.sleep(30)
            return await super().verify(pairs, deadline=deadline)

    made = parts(verifier=FakeVerifierThatStalls())
    asked = engine(made, on_fabrication="drop").events(QUESTION, request_id="r", deadline=within(0.5))
    events = [event async for event in asked]
    assert [event.text for event in events if isinstance(event, Proven)] == ["The tower was built in 1889."]
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.truncated
    assert events[-1].answer.text == "The tower was built in 1889."


PIECE = st.sampled_from(
    [
        "tower",
        "museum",
        "river",
        "1889",
        "[1]",
        "[2]",
        "[9]",
        ". ",
        "\n",
        "\n\n",
        "- ",
        "It",
        "| a |",
        "|---|",
        "`",
        "# ",
    ]
)


@settings(max_examples=80)
@given(st.lists(PIECE, max_size=24).map(" ".join), st.integers(1, 9))
async def test_what_is_told_is_the_answer_in_its_order(reply: str, step: int) -> None:
    made = parts(
        synthesizer=FakeSynthesizer(reply, step=step), verifier=FakeVerifier({"tower": "tower", "It": "river"})
    )
    events = await all_events(made, on_fabrication="drop")
    assert isinstance(events[-1], Finished)
    told = [event.text for event in events if isinstance(event, Proven)]
    assert told == [claim.text for claim in events[-1].answer.claims]


# Time


async def test_when_time_is_short_less_is_asked_for() -> None:
    passages = [Passage(id=str(n), title=f"T{n}", text=f"word{n} " * 90, source=str(n)) for n in range(8)]
    synthesizer = FakeSynthesizer(REPLY)
    made = parts(synthesizer=synthesizer, retriever=FakeRetriever(passages))
    asked = engine(made, max_reply_tokens=200)
    for _ in range(2):
        asked._pace.observe(prompt_tokens=1000, first_s=4.0, reply_tokens=101, writing_s=4.0, verifying_s=0.1)
    for seconds in (600.0, 3.0):
        await asked.ask(QUESTION, request_id="r", deadline=within(seconds))
    whole, short = synthesizer.requests
    assert whole.max_tokens == 200
    assert LEAST_REPLY <= short.max_tokens < 100
    assert len(short.messages[1].content) < len(whole.messages[1].content) / 1.5


async def test_a_stage_that_leaves_no_time_for_an_answer_fails_there() -> None:
    class FakeRerankerThatStalls(FakeReranker):
        async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
            await asyncio.sleep(30)
            return []

    synthesizer = FakeSynthesizer(REPLY)
    asked = engine(parts(synthesizer=synthesizer, reranker=FakeRerankerThatStalls()))
    asked._pace.observe(prompt_tokens=1000, first_s=4.0, reply_tokens=101, writing_s=4.0, verifying_s=0.1)
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError, match="reranking"):
        await asked.ask(QUESTION, request_id="r", deadline=within(1.0))
    assert time.monotonic() - began < 0.9
    assert synthesizer.requests == []


@pytest.mark.parametrize(("ending", "truncated"), [('"}', False), ("", True)])
async def test_a_structured_reply_is_cut_short_only_when_its_object_is_not_whole(ending: str, truncated: bool) -> None:
    reply = f'{{"declined": false, "decline_reason": null, "cites": [1], "text": "{PIECES[0]}1793. The river {ending}'
    synthesizer = FakeSynthesizer(reply, finish_reason="length")
    answer = await engine(parts(synthesizer=synthesizer), grammar="structured").ask(
        QUESTION, request_id="r", deadline=within()
    )
    assert answer.outcome == "answered"
    assert answer.truncated is truncated


async def test_a_verifier_that_says_it_was_late_takes_back_nothing_that_was_proven() -> None:
    class FakeVerifierThatIsLate(FakeVerifier):
        async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
            if "museum" in pairs[0].claim:
                raise DeadlineExceededError("the deadline passed while waiting for the verifier")
            return await super().verify(pairs, deadline=deadline)

    answer = await engine(parts(verifier=FakeVerifierThatIsLate())).ask(QUESTION, request_id="r", deadline=within())
    assert (answer.text, answer.truncated, answer.verified) == ("The tower was built in 1889.", True, False)
    with pytest.raises(DeadlineExceededError):
        await engine(parts(verifier=FakeVerifier(error=DeadlineExceededError("late")))).ask(
            QUESTION, request_id="r", deadline=within()
        )


async def test_what_was_proven_in_time_stays_proven_for_a_reader_who_comes_late() -> None:
    events = engine(parts("".join(PIECES)), on_fabrication="drop").events(
        QUESTION, request_id="r", deadline=within(0.4)
    )
    heard: list[Event] = []
    async for event in events:
        heard.append(event)
        if isinstance(event, Proven) and len(heard) == 3:
            await asyncio.sleep(0.6)  # all is written and judged meanwhile, and the deadline passes
    assert isinstance(heard[-1], Finished)
    answer = heard[-1].answer
    assert (len(answer.claims), answer.verified, answer.truncated) == (3, True, False)
