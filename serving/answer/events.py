"""What the engine says while it works. Every rendering (JSON, streams, terminal) is a fold of these.

They come in this order: ``Routed``, ``Found``, any ``Proven`` and ``Withheld``, ``Finished``; an error ends the stream
as an exception.
"""

from __future__ import annotations

from dataclasses import dataclass

from serving.answer.types import Citation, Passage, Reason, Route
from serving.answer.wire import Answer


@dataclass(frozen=True, slots=True)
class Routed:
    """The route that was chosen, the one that runs, and why."""

    chosen: Route
    ran: Route
    cue: str


@dataclass(frozen=True, slots=True)
class Found:
    """The passages: on ``search`` the results, else the context the model is given, in chunk order."""

    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Proven:
    """A claim of the answer with the citations that prove it, in the order of the answer."""

    text: str
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class Withheld:
    """Claims that were dropped for a reason. Their text is never told."""

    reason: Reason
    count: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer, whole."""

    answer: Answer


Event = Routed | Found | Proven | Withheld | Finished
