"""The events of a streamed answer as they are sent: what each is called and holds, and its bytes.

Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): each has an id, a name and one line
of JSON, which has no line breaks of its own.
"""

from __future__ import annotations

from pydantic import BaseModel

from serving.answer.events import Event, Found, Proven, Routed, Withheld
from serving.answer.types import Citation
from serving.answer.wire import Answer, CitationOut, Dropped, PassageOut, RouteOut, Wire

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which readers pass over."""

ERROR = "error"
"""The name of the event that ends a stream which failed. It holds what an error response does."""


class PassagesOut(Wire):
    """The passages, as the answer will have them: citations count in them."""

    passages: tuple[PassageOut, ...]


class MarkedCitation(CitationOut):
    """A citation with its number in text: ``marker`` is ``chunk`` + 1."""

    marker: int

    @classmethod
    def of(cls, citation: Citation) -> MarkedCitation:
        return cls(**CitationOut.of(citation).model_dump(), marker=citation.chunk + 1)


class ProvenOut(Wire):
    """A claim that is proven and will be in the answer, after those that were sent before it."""

    text: str
    citations: tuple[MarkedCitation, ...]


Told = RouteOut | PassagesOut | ProvenOut | Dropped | Answer

KINDS: dict[str, type[Told]] = {
    "route": RouteOut,
    "passages": PassagesOut,
    "claim": ProvenOut,
    "dropped": Dropped,
    "answer": Answer,
}
"""What the events hold, by their names."""
_NAMES = {kind: name for name, kind in KINDS.items()}


def told(event: Event) -> Told:
    """What is sent of an event."""
    if isinstance(event, Routed):
        return RouteOut(chosen=event.chosen, ran=event.ran, cue=event.cue)
    if isinstance(event, Found):
        return PassagesOut(passages=tuple(PassageOut.of(passage) for passage in event.passages))
    if isinstance(event, Proven):
        return ProvenOut(text=event.text, citations=tuple(MarkedCitation.of(one) for one in event.citations))
    if isinstance(event, Withheld):
        return Dropped(reason=event.reason, count=event.count)
    return event.answer


def name_of(said: Told) -> str:
    return _NAMES[type(said)]


class Encoder:
    """Makes the bytes of one response's events, which it numbers from 1."""

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id
        self._sent = 0

    def encode(self, name: str, body: BaseModel) -> bytes:
        self._sent += 1
        return f"id: {self._request_id}:{self._sent}\nevent: {name}\ndata: {body.model_dump_json()}\n\n".encode()
