"""The engine over scripted seams: every outcome, every refusal, deadlines, incidents, and nothing left running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.answer import grounding, prompt
from serving.answer.engine import Engine
from serving.answer.errors import DeadlineExceededError, InvalidQuestionError, UnavailableError
from serving.answer.events import Finished, Found, Proven, Routed, Withheld
from serving.answer.policy import Policy
from serving.answer.reference import OverlapVerifier, RareWordRelevance
from serving.answer.seams import Parts
from serving.answer.types import Deadline, Passage, Reason, Route
from serving.answer.wire import Answer, Versions
from tests.unit.answer.fakes import (
    FakeClassifier,
    FakeCounter,
    FakeRelevance,
    FakeReranker,
    FakeRetriever,
    FakeSynthesizer,
    FakeVerifier,
)

PASSAGES = [
    Passage(
        id="a", title="Eiffel Tower", text="The tower was built in 1889.", source="tower", url="https://a.example/"
    ),
    Passage(id="b", title="Louvre", text="The museum opened in 1793.", source="museum"),
    Passage(id="c", title="Seine", text="The river flows to the sea.", source="river"),
]
REPLY = "The tower was built in 1889 [1]. The museum opened in 1793 [2]."


def parts(reply: str = REPLY, **changes: Any) -> Parts:
    made = Parts(
        classifier=FakeClassifier(),
        retriever=FakeRetriever(PASSAGES),
        reranker=FakeReranker(),
        synthesizer=FakeSynthesizer(reply),
        verifier=FakeVerifier(),
        relevance=FakeRelevance(),
        counter=FakeCounter(),
    )
    return replace(made, **changes)


def engine(made: Parts, **policy: Any) -> Engine:
    chosen = Policy(**{"grammar": "free", **policy})
    return Engine(
        made,
        chosen,
        Versions(synthesizer="scripted"),
        clock=time.monotonic,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        nonce=lambda: "c0ffee42",
    )


async def ask(made: Parts, question: str = "When was the tower built?", seconds: float = 5.0, **policy: Any) -> Answer:
    return await engine(made, **policy).ask(question, request_id="r1", deadline=Deadline.after(seconds, time.monotonic))


async def test_an_answer_is_proven_cited_marked_and_grounded() -> None:
    answer = await ask(parts())
    assert answer.outcome == "answered"
    assert answer.verified
    assert answer.text == "The tower was built in 1889. The museum opened in 1793."
    assert answer.marked_text == "The tower was built in 1889 [1]. The museum opened in 1793 [2]."
    assert [[c.chunk for c in claim.citations] for claim in answer.claims] == [[0], [1]]
    grounding.validate(answer.text, answer.grounding)
    for support, claim in zip(answer.grounding.groundingSupports, answer.claims, strict=True):
        assert support.segment.text == claim.text
        assert (support.segment.startIndex, support.segment.endIndex) == claim.span.utf8
    assert answer.grounding.groundingChunks[0].web is not None
    assert answer.grounding.groundingChunks[1].retrievedContext is not None
    assert [passage.id for passage in answer.passages] == ["a", "b", "c"]
    assert answer.usage.verified_pairs == 2
    assert answer.versions.index == "generation-1"
    assert answer.versions.prompt == prompt.version()
    assert answer.decline is None


async def test_unproven_claims_are_dropped_untold_and_the_answer_is_not_verified() -> None:
    answer = await ask(parts(verifier=FakeVerifier({"tower": "tower"})))
    assert answer.outcome == "answered"
    assert answer.text == "The tower was built in 1889."
    assert not answer.verified
    assert [(drop.reason, drop.count) for drop in answer.dropped] == [(Reason.NOT_ENTAILED, 1)]
    assert "museum opened" not in answer.model_dump_json(exclude={"passages", "grounding"})


async def test_nothing_proven_is_declined_without_claims_or_citations() -> None:
    answer = await ask(parts(verifier=FakeVerifier({})))
    assert answer.outcome == "declined"
    assert answer.decline is not None
    assert answer.decline.reason == "nothing_proven"
    assert (answer.text, answer.claims, answer.grounding.groundingSupports) == ("", (), ())
    assert answer.passages


@pytest.mark.parametrize(
    ("reply", "reason", "cause"),
    [
        (prompt.DECLINE_LINE, "not_in_passages", None),
        ("The tower was built in 1889.", "refused", "ungrounded"),
        ("", "refused", "ungrounded"),
        ("The tower was built in 1889 [1]. It is tall [9].", "refused", "fabricated_citation"),
        ("The tower was built in 1889 [0].", "refused", "fabricated_citation"),
    ],
)
async def test_declines_and_refusals(reply: str, reason: str, cause: str | None) -> None:
    answer = await ask(parts(reply))
    assert answer.outcome == "declined"
    assert answer.decline is not None
    assert (answer.decline.reason, answer.decline.cause) == (reason, cause)
    assert answer.claims == ()


async def test_by_policy_a_fabricated_citation_drops_its_claim_alone() -> None:
    answer = await ask(parts("The tower was built in 1889 [1]. It is tall [9]."), on_fabrication="drop")
    assert answer.text == "The tower was built in 1889."
    assert [(drop.reason, drop.count) for drop in answer.dropped] == [(Reason.FABRICATED_CITATION, 1)]


async def test_a_bracketed_year_refuses_nothing() -> None:
    answer = await ask(parts("The tower [1889] was built [1]."))
    assert answer.outcome == "answered"
    assert answer.text == "The tower was built."


async def test_nothing_retrieved_asks_no_model() -> None:
    made = parts(retriever=FakeRetriever([]))
    answer = await ask(made)
    assert answer.decline is not None
    assert answer.decline.reason == "nothing_retrieved"
    assert made.synthesizer.requests == []  # type: ignore[attr-defined]
    assert made.reranker.calls == 0  # type: ignore[attr-defined]


async def test_noise_below_the_score_floor_is_left_out() -> None:
    answer = await ask(parts(), score_floor=0.4)
    assert [passage.id for passage in answer.passages] == ["a", "b"]
    answer = await ask(parts(reranker=FakeLowReranker()), score_floor=0.4)
    assert answer.decline is not None
    assert answer.decline.reason == "nothing_retrieved"


class FakeLowReranker(FakeReranker):
    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
        return [0.1] * len(documents)


async def test_search_touches_no_model() -> None:
    made = parts(classifier=FakeClassifier(Route.SEARCH))
    answer = await ask(made, "pypi login")
    assert answer.outcome == "search"
    assert [passage.id for passage in answer.passages] == ["a", "b", "c"]
    assert made.retriever.lexical_calls == 1  # type: ignore[attr-defined]
    assert made.retriever.hybrid_calls == 0  # type: ignore[attr-defined]
    assert made.reranker.calls == 0  # type: ignore[attr-defined]
    assert made.verifier.pairs == []  # type: ignore[attr-defined]
    assert made.synthesizer.requests == []  # type: ignore[attr-defined]


async def test_an_agentic_question_runs_a_single_pass_with_a_wider_context_and_says_so() -> None:
    many = [Passage(id=str(n), text=f"The tower number {n} stands.", source=str(n)) for n in range(20)]
    made = parts(
        "The tower number 0 stands [1].", classifier=FakeClassifier(Route.AGENTIC), retriever=FakeRetriever(many)
    )
    answer = await ask(made, context_passages=4, agentic_passages=9)
    assert (answer.route.chosen, answer.route.ran) == (Route.AGENTIC, Route.SINGLE_PASS)
    assert len(answer.passages) == 9
    narrow = await engine(made, context_passages=4, agentic_passages=9).ask(
        "?x", request_id="r", deadline=Deadline.after(5, time.monotonic), granted=Route.SINGLE_PASS
    )
    assert (narrow.route.chosen, len(narrow.passages)) == (Route.AGENTIC, 4)


async def test_a_cut_reply_loses_its_last_half_sentence() -> None:
    made = parts(
        synthesizer=FakeSynthesizer("The tower was built in 1889 [1]. The museum [2] is", finish_reason="length")
    )
    answer = await ask(made)
    assert answer.text == "The tower was built in 1889."
    assert answer.truncated
    assert not answer.verified
    assert [drop.reason for drop in answer.dropped] == [Reason.TRUNCATED]


async def test_a_deadline_with_something_proven_answers_truncated() -> None:
    class FakeSlowSecond(FakeVerifier):
        async def verify(self, pairs, *, deadline):  # type: ignore[no-untyped-def]
            if any("museum" in pair.claim for pair in pairs):
                await asyncio.sleep(60)
            return await super().verify(pairs, deadline=deadline)

    answer = await ask(parts(verifier=FakeSlowSecond()), seconds=0.4)
    assert answer.text == "The tower was built in 1889."
    assert answer.truncated
    assert not answer.verified
    assert [(drop.reason, drop.count) for drop in answer.dropped] == [(Reason.DEADLINE, 1)]


async def test_a_deadline_with_nothing_proven_is_an_incident() -> None:
    with pytest.raises(DeadlineExceededError):
        await ask(parts(verifier=FakeVerifier(stall_s=60)), seconds=0.2)
    with pytest.raises(DeadlineExceededError):
        await ask(parts(synthesizer=FakeSynthesizer("The tow", finish_reason="deadline")))


async def test_a_part_that_is_down_is_an_incident_and_leaves_nothing_running() -> None:
    made = parts(verifier=FakeVerifier(error=UnavailableError("the verifier is down")))
    before = asyncio.all_tasks()
    with pytest.raises(UnavailableError):
        await ask(made)
    assert asyncio.all_tasks() == before
    assert made.synthesizer.closed == 1  # type: ignore[attr-defined]


async def test_a_caller_who_leaves_closes_the_generation() -> None:
    made = parts(synthesizer=FakeSynthesizer(REPLY, stall_s=0.05))
    task = asyncio.create_task(ask(made))
    await asyncio.sleep(0.12)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert made.synthesizer.closed == 1  # type: ignore[attr-defined]


async def test_verification_overlaps_generation() -> None:
    verifier = FakeVerifier()
    synthesizer = FakeSynthesizer(REPLY + " The river flows to the sea [3].", stall_s=0.01)
    seen: list[int] = []

    class FakeWatchingVerifier(FakeVerifier):
        async def verify(self, pairs, *, deadline):  # type: ignore[no-untyped-def]
            seen.append(synthesizer.closed)
            return await verifier.verify(pairs, deadline=deadline)

    answer = await ask(parts(synthesizer=synthesizer, verifier=FakeWatchingVerifier()))
    assert len(answer.claims) == 3
    assert seen[0] == 0, "the first sentence is checked while the model still writes"
    assert len(verifier.pairs) == 3, "no claim is checked twice"


@pytest.mark.parametrize("question", ["", "   \n", "x" * 2001])
async def test_a_question_that_is_none_is_a_typed_error(question: str) -> None:
    with pytest.raises(InvalidQuestionError):
        await ask(parts(), question)


async def test_events_come_in_order_and_agree_with_the_answer() -> None:
    made = parts(verifier=FakeVerifier({"tower": "tower"}))
    events = [
        event
        async for event in engine(made).events(
            "When was the tower built?", request_id="r", deadline=Deadline.after(5, time.monotonic)
        )
    ]
    assert [type(event) for event in events] == [Routed, Found, Proven, Withheld, Finished]
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.claims[0].text == events[2].text  # type: ignore[union-attr]


async def test_passages_are_numbered_by_rank_wherever_they_stand() -> None:
    made = parts()
    await ask(made)
    user = made.synthesizer.requests[0].messages[1].content  # type: ignore[attr-defined]
    assert user.index("[1] <<") < user.index("[3] <<") < user.index("[2] <<")


async def test_under_the_quote_grammar_only_sentences_that_bear_on_the_question_can_be_written() -> None:
    made = parts("The tower was built in 1889 [1].", relevance=RareWordRelevance(), verifier=OverlapVerifier())
    answer = await ask(made, grammar="quotes")
    assert answer.text == "The tower was built in 1889."
    grammar = made.synthesizer.requests[0].grammar  # type: ignore[attr-defined]
    assert "tower was built" in grammar
    assert "museum" not in grammar


async def test_when_no_sentence_bears_on_the_question_the_model_is_not_asked() -> None:
    made = parts(relevance=RareWordRelevance(), verifier=OverlapVerifier())
    answer = await ask(made, "Who won the 1954 chess olympiad?", grammar="quotes")
    assert answer.decline is not None
    assert answer.decline.reason == "not_in_passages"
    assert made.synthesizer.requests == []  # type: ignore[attr-defined]


WORDS = st.sampled_from(["tower", "museum", "river", "1889", "[1]", "[2]", "[9]", ".", "\n", "- ", "é日", "?", "`"])


@settings(max_examples=60)
@given(st.lists(WORDS, max_size=24))
async def test_whatever_the_model_writes_every_shown_byte_is_a_proven_claim_or_a_separator(words: list[str]) -> None:
    answer = await ask(parts(" ".join(words), verifier=OverlapVerifier(0.9)), on_fabrication="drop")
    data = answer.text.encode()
    grounding.validate(answer.text, answer.grounding)
    at = 0
    for claim in answer.claims:
        assert data[at : claim.span.utf8[0]].decode().strip(" \n-") == ""
        assert claim.citations
        at = claim.span.utf8[1]
    assert at == len(data)


class FakeSwitchingRetriever(FakeRetriever):
    """A newer index takes over while the first search runs."""

    def __init__(self) -> None:
        super().__init__(PASSAGES)
        self._searches = 0

    async def lexical(self, query: str, limit: int, *, deadline: Deadline) -> list[Passage]:
        self._searches += 1
        return [replace(PASSAGES[0], id=f"of-index-{min(self._searches, 2)}")]

    async def hybrid(self, query: str, limit: int, *, deadline: Deadline) -> list[Passage]:
        return await self.lexical(query, limit, deadline=deadline)

    async def version(self) -> str:
        return f"index-{min(1 + self._searches, 2)}"


@pytest.mark.parametrize("route", [Route.SEARCH, Route.SINGLE_PASS])
async def test_the_version_is_of_the_index_that_held_the_passages(route: Route) -> None:
    answer = await ask(parts(retriever=FakeSwitchingRetriever(), classifier=FakeClassifier(route)))
    assert (answer.versions.index, answer.passages[0].id) == ("index-2", "of-index-2")
