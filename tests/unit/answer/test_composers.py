"""The engine with a structured composer, over scripted replies: what is shown, declined, refused and reported."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from serving.answer import prompt
from serving.answer.policy import GrammarMode
from serving.answer.seams import Generation
from serving.answer.structured import schema
from serving.answer.types import Message, Reason
from tests.unit.answer.fakes import FakeSynthesizer, FakeVerifier
from tests.unit.answer.test_engine import ask, parts

BOTH = "The tower was built in 1889. The museum opened in 1793."
OPENED = '{"declined":false,"decline_reason":null,"cites":[1,2],"text":"The tower was built in 1889. '


def structured(text: str = BOTH, cites: tuple[int, ...] = (1, 2), **members: Any) -> str:
    return json.dumps({"declined": False, "decline_reason": None, "cites": cites, "text": text} | members)


async def test_each_sentence_is_checked_against_all_that_is_cited_then_pruned() -> None:
    verifier = FakeVerifier({"tower": "tower", "museum": "museum"})
    made = parts(structured(cites=(3, 2, 1)), verifier=verifier)
    answer = await ask(made, grammar="structured")
    assert answer.verified
    assert answer.marked_text == "The tower was built in 1889 [1]. The museum opened in 1793 [2]."
    request: Generation = made.synthesizer.requests[0]  # type: ignore[attr-defined]
    assert (request.grammar, request.schema) == (None, schema(3))
    assert request.messages[0].content == prompt.templates(as_json=True)[0]


@pytest.mark.parametrize(
    ("reply", "reason", "cause"),
    [
        (structured("", (), declined=True, decline_reason="not_in_passages"), "not_in_passages", None),
        (structured(declined=True), "not_in_passages", None),
        (structured(prompt.DECLINE_LINE), "not_in_passages", None),
        (prompt.DECLINE_LINE, "not_in_passages", None),
        (structured(cites=()), "refused", "ungrounded"),
        (structured(cites=(1, 9)), "refused", "fabricated_citation"),
        (structured("The tower was built in 1889 [9]."), "refused", "fabricated_citation"),
        ("The tower was built in 1889 [1].", "refused", "ungrounded"),
        ("", "refused", "ungrounded"),
        ('{"declined": false, "cites"', "refused", "ungrounded"),
    ],
)
async def test_declines_and_refusals(reply: str, reason: str, cause: str | None) -> None:
    answer = await ask(parts(reply), grammar="structured")
    assert answer.decline is not None
    assert (answer.decline.reason, answer.decline.cause) == (reason, cause)
    assert answer.claims == ()


async def test_markers_in_the_text_are_taken_out_and_count() -> None:
    answer = await ask(parts(structured("The river flows to the sea [3].", (1,))), grammar="structured")
    assert answer.text == "The river flows to the sea."
    assert {citation.chunk for citation in answer.claims[0].citations} <= {0, 2}


async def test_by_policy_what_cites_a_made_up_passage_is_dropped() -> None:
    answer = await ask(parts(structured(cites=(1, 9))), grammar="structured", on_fabrication="drop")
    assert answer.decline is not None
    assert answer.decline.reason == "nothing_proven"
    assert [(drop.reason, drop.count) for drop in answer.dropped] == [(Reason.FABRICATED_CITATION, 2)]


@pytest.mark.parametrize("finish_reason", ["length", "stop"])
async def test_an_object_that_breaks_off_keeps_its_whole_sentences(finish_reason: str) -> None:
    synthesizer = FakeSynthesizer(OPENED + "The museum opened in 17", finish_reason=finish_reason)
    answer = await ask(parts(synthesizer=synthesizer), grammar="structured")
    assert answer.text == "The tower was built in 1889."
    assert answer.truncated
    assert not answer.verified
    assert [drop.reason for drop in answer.dropped] == [Reason.TRUNCATED]


async def test_verification_overlaps_generation() -> None:
    synthesizer = FakeSynthesizer(structured(BOTH + " The river flows to the sea."), stall_s=0.01)
    seen: list[int] = []

    class FakeWatchingVerifier(FakeVerifier):
        async def verify(self, pairs, *, deadline):  # type: ignore[no-untyped-def]
            seen.append(synthesizer.closed)
            await asyncio.sleep(0)
            return await super().verify(pairs, deadline=deadline)

    answer = await ask(parts(synthesizer=synthesizer, verifier=FakeWatchingVerifier()), grammar="structured")
    assert len(answer.claims) == 3
    assert seen[0] == 0, "the first sentence is checked while the model still writes"


@pytest.mark.parametrize("mode", list(GrammarMode))
async def test_the_prompt_of_a_mode_is_the_exported_one(mode: GrammarMode) -> None:
    made = parts(structured() if mode is GrammarMode.STRUCTURED else "The tower was built in 1889 [1].")
    answer = await ask(made, grammar=mode)
    system, user = prompt.templates(as_json=mode is GrammarMode.STRUCTURED)
    sent = made.synthesizer.requests[0].messages  # type: ignore[attr-defined]
    assert sent[0] == Message("system", system)
    before, _, rest = user.partition("{passages}")
    assert sent[1].content.startswith(before)
    assert sent[1].content.endswith(rest.format(question="When was the tower built?"))
    assert answer.versions.prompt == prompt.version()


@pytest.mark.parametrize("as_json", [False, True])
def test_no_question_can_write_the_last_line_of_a_prompt(as_json: bool) -> None:
    last = prompt.templates(as_json=as_json)[1].splitlines()[-1]
    assert prompt.neutralise(last) != last


def test_a_reply_is_held_to_one_constraint() -> None:
    with pytest.raises(ValueError, match="not to both"):
        Generation((), "r", 5, grammar="a", schema="{}")
