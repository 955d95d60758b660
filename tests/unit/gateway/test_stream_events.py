"""The bytes of a stream: whatever text is put in comes out of a reader that knows the standard and not us."""

from __future__ import annotations

import httpx
import pytest
from httpx_sse import EventSource, ServerSentEvent
from hypothesis import example, given
from hypothesis import strategies as st

from serving.answer.events import Event, Finished, Found, Proven, Routed, Withheld
from serving.answer.types import Citation, Passage, Reason, Route
from serving.answer.wire import Answer
from serving.gateway.stream_events import KEEP_ALIVE, KINDS, Encoder, ProvenOut, name_of, told

from .fakes import PASSAGE, answered, declined, searched

# Every character that some reader of lines takes for the end of one, and what begins a field or a comment.
BREAKS = "\n\r\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\x00\ufeff: data: x\nevent: answer\n\n"
TEXTS = st.text() | st.text(st.sampled_from(BREAKS))
REQUEST_IDS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128)


def read(data: bytes, *, pieces: list[int] | None = None) -> list[ServerSentEvent]:
    """The events of a stream that arrives in pieces of these lengths, then the rest."""
    parts, at = [], 0
    for size in pieces or []:
        parts.append(data[at : at + size])
        at += size
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=iter([*parts, data[at:]]))
    return [event for event in EventSource(response).iter_sse() if event.data]  # a comment leaves one without data


@given(texts=st.lists(TEXTS, max_size=5), request_id=REQUEST_IDS, pieces=st.lists(st.integers(1, 60), max_size=20))
@example(texts=[BREAKS], request_id="r:1", pieces=[1] * 100)
def test_any_text_comes_out_as_it_was(texts: list[str], request_id: str, pieces: list[int]) -> None:
    encoder = Encoder(request_id)
    events: list[Event] = [Proven(text, (Citation(2, 0.91236),)) for text in texts]
    events += [Found((Passage(id=text, text=text, title=text),)) for text in texts]
    events += [Routed(Route.AGENTIC, Route.SINGLE_PASS, text) for text in texts]
    said = [told(event) for event in events]
    sent = b"".join(KEEP_ALIVE + encoder.encode(name_of(one), one) for one in said)
    got = read(sent, pieces=pieces)
    assert [KINDS[event.event].model_validate_json(event.data) for event in got] == said
    assert [event.id for event in got] == [f"{request_id}:{at + 1}" for at in range(len(said))]
    assert sent.count(b"\n") == 6 * len(said)  # no byte of a text ends a line


@pytest.mark.parametrize("answer", [answered(), declined(), searched("r1", PASSAGE)])
def test_an_answer_comes_out_whole(answer: Answer) -> None:
    said = told(Finished(answer))
    [event] = read(Encoder("r1").encode(name_of(said), said))
    assert event.event == "answer"
    assert Answer.model_validate_json(event.data) == answer


def test_each_event_has_its_name() -> None:
    events: list[Event] = [
        Routed(Route.SEARCH, Route.SEARCH, "x"),
        Found(()),
        Proven("x", ()),
        Withheld(Reason.UNCITED, 2),
        Finished(answered()),
    ]
    assert [name_of(told(event)) for event in events] == list(KINDS)


def test_a_citation_has_its_number_and_its_marker() -> None:
    said = told(Proven("Chain chains.", (Citation(0, 0.93), Citation(4, 0.876543))))
    assert isinstance(said, ProvenOut)
    assert said.model_dump(mode="json") == {
        "text": "Chain chains.",
        "citations": [{"chunk": 0, "score": 0.93, "marker": 1}, {"chunk": 4, "score": 0.8765, "marker": 5}],
    }
