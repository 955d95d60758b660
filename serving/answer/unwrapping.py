"""A structured reply as it is written: its text is parsed like any other, and each sentence cites all that it cites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from serving.answer.jsonstream import ObjectReader
from serving.answer.prompt import DECLINE_LINE
from serving.answer.statements import Reply, Statement
from serving.answer.streaming import Parser
from serving.answer.structured import decode_member


class StructuredParser:
    """Parses one structured reply over ``passages`` passages, as :class:`~serving.answer.streaming.Parser` does prose.

    Statements are given out once it is known that the reply declines nothing and what it cites; markers in its text
    count beside ``cites``. Accepts any text: what is no such object gives no statements, and what breaks off gives
    those before the break.
    """

    def __init__(self, passages: int) -> None:
        self._passages = passages
        self._reader = ObjectReader("text")
        self._parser = Parser(passages)
        self._held: list[Statement] = []
        self._cites: tuple[int, ...] = ()
        self._finished = False

    @property
    def declined(self) -> bool:
        """Whether the reply says that the passages do not answer."""
        text = self._reader.members.get("text")
        return self._member("declined") is True or (isinstance(text, str) and text.strip() == DECLINE_LINE)

    @property
    def closed(self) -> bool:
        """Whether the object is whole."""
        return self._reader.closed

    def feed(self, piece: str) -> list[Statement]:
        """Takes the next piece of the reply; returns the statements that are now certain, in order."""
        self._held += self._parser.feed(self._reader.feed(piece))
        return self._release()

    def finish(self) -> list[Statement]:
        """Ends the reply; returns the statements that were still held. Feed no more after it."""
        self._held += self._parser.finish()
        self._finished = True
        return self._release()

    def reply(self) -> Reply:
        """The text and its statements; after :meth:`finish`, the whole of it."""
        parsed = self._parser.reply()
        numbers = tuple(self._fabricated())
        cited = tuple(self._citing(parsed.statements))
        return replace(parsed, statements=cited, fabricated=(*numbers, *parsed.fabricated))

    def _release(self) -> list[Statement]:
        known = self._member("declined") is not None and self._member("cites") is not None
        if self.declined or not (known or self._finished):
            return []
        self._cites = self._member("cites") or ()
        released, self._held = self._citing(self._held), []
        return released

    def _member(self, name: str) -> Any:
        """A member, None while it is not there and when it is not of its type."""
        if name not in self._reader.members:
            return None
        try:
            return decode_member(name, self._reader.members[name])
        except ValidationError:
            return None

    def _fabricated(self) -> list[str]:
        return [str(number) for number in dict.fromkeys(self._cites) if not 1 <= number <= self._passages]

    def _citing(self, statements: Sequence[Statement]) -> list[Statement]:
        chunks = {number - 1 for number in self._cites if 1 <= number <= self._passages}
        fabricated = tuple(self._fabricated())
        return [
            replace(
                statement,
                claim=replace(
                    statement.claim,
                    chunks=tuple(sorted(chunks.union(statement.claim.chunks))),
                    fabricated=(*fabricated, *statement.claim.fabricated),
                ),
            )
            for statement in statements
        ]
