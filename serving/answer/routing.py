"""The rule classifier: which route a question takes, and the words that decided it.

The order is navigational, multi-hop or comparison, long informational, plain question. Anything ambiguous takes a
single pass: only a query that surely asks for a place goes without an answer.
"""

from __future__ import annotations

from serving.answer.hops import multi_hop
from serving.answer.navigation import navigational
from serving.answer.reading import AUXILIARIES, REQUESTS, WH_WORDS, Reading, read
from serving.answer.types import Deadline, Route, Routing

_LONG_WORDS = 8


class RuleClassifier:
    """The seam ``Classifier`` on rules alone: no model, no state, never an error."""

    async def classify(self, question: str, *, deadline: Deadline) -> Routing:  # noqa: ARG002
        return classify(question)


def classify(question: str) -> Routing:
    """The route of any string, in time linear in its length. The same string always gets the same route."""
    reading = read(question)
    cue = navigational(reading)
    if cue is not None:
        return Routing(Route.SEARCH, cue)
    cue = multi_hop(reading)
    if cue is not None:
        return Routing(Route.AGENTIC, cue)
    return Routing(Route.SINGLE_PASS, _informational(reading) or _plain(reading) or "ambiguous")


def _informational(reading: Reading) -> str | None:
    if reading.asks or len(reading.words) < _LONG_WORDS:
        return None
    return f"long informational: {len(reading.words)} words"


def _plain(reading: Reading) -> str | None:
    opener = reading.opener
    for name, words in (("question word", WH_WORDS), ("auxiliary", AUXILIARIES), ("request", REQUESTS)):
        if opener in words:
            return f'{name}: "{opener}"'
    if reading.asks:
        return 'question mark: "?"'
    inner = next((word for word in reading.words if word in WH_WORDS), None)
    return f'question word: "{inner}"' if inner else None
