"""JSON while it is being written: an object's members once they are whole, and one string of them letter by letter."""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from typing import Any

_HEX = "[0-9a-fA-F]"
_HIGH = rf"\\u[dD][89abAB]{_HEX}{{2}}"  # the first half of a character, if the second half follows
_CERTAIN = re.compile(
    rf'(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89abAB]){_HEX}{{4}}|{_HIGH}(?=[^\\]|\\[^u]|\\u{_HEX}{{4}}))*+', re.DOTALL
)
_UNCERTAIN = re.compile(rf"(?:{_HIGH})?(?:\\(?:u{_HEX}{{0,3}})?)?\Z")
_BLANK = re.compile(r"[ \t\n\r]*+")
_KEY = re.compile(r'("(?:[^"\\]|\\.)*+")[ \t\n\r]*+:[ \t\n\r]*+(?=\S)', re.DOTALL)


class StringDecoder:
    """Decodes the inside of a JSON string, fed in any pieces, to what ``json.loads`` makes of the whole.

    Raw control characters are accepted. ``rest`` is what followed the closing quote, None until that has come.
    ``broken``: there was something that is no escape sequence, and nothing is read from there on.
    """

    def __init__(self) -> None:
        self._held = ""
        self.rest: str | None = None
        self.broken = False

    def feed(self, piece: str) -> str:
        """The characters that are now certain."""
        source = self._held + piece
        end = _CERTAIN.match(source).end()  # type: ignore[union-attr]  # matches the empty string
        if source.startswith('"', end):
            self.rest = source[end + 1 :]
        else:
            self.broken = not _UNCERTAIN.match(source, end)
        self._held = source[end:] if self.rest is None else ""
        return str(json.loads(f'"{source[:end]}"', strict=False))


class _At(Enum):
    START = auto()
    KEY = auto()
    VALUE = auto()
    STRING = auto()
    END = auto()


class ObjectReader:
    """Reads one JSON object, fed in any pieces. Accepts any text and never raises.

    What stands before the object and after it is passed over. ``members`` are those that are whole, decoded; the string
    member named ``streamed`` is given out as it is read, and joins them at its end. ``closed``: the object is whole.
    What breaks JSON's rules inside the object ends the reading: nothing comes after it.
    """

    def __init__(self, streamed: str) -> None:
        self._streamed = streamed
        self._buffer = ""
        self._at = _At.START
        self._key = ""
        self._decoder = StringDecoder()
        self._pieces: list[str] = []
        self.members: dict[str, Any] = {}
        self.closed = False

    def feed(self, piece: str) -> str:
        """What is new of the streamed member."""
        self._buffer += piece
        before = len(self._pieces)
        while self._step():
            pass
        return "".join(self._pieces[before:])

    def _step(self) -> bool:
        """Goes on by one part of the object; false when that has not come yet."""
        if self._at is _At.START:
            return self._start()
        if self._at is _At.KEY:
            return self._member()
        if self._at is _At.VALUE:
            return self._value()
        if self._at is _At.STRING:
            return self._string()
        self._buffer = ""
        return False

    def _start(self) -> bool:
        opened = self._buffer.find("{")
        self._buffer = self._buffer[opened + 1 :] if opened >= 0 else ""
        if opened >= 0:
            self._at = _At.KEY
        return opened >= 0

    def _member(self) -> bool:
        text = self._buffer.lstrip(" \t\n\r,")
        if text[:1] == "}":
            self._at, self.closed = _At.END, True
            return True
        if text and text[0] != '"':  # a brace in what was said before the object
            self._at = _At.END if self.members else _At.START
            return True
        key = _KEY.match(text)
        if key is None:
            return False
        try:
            self._key = str(json.loads(key[1], strict=False))
        except ValueError:
            self._at = _At.END
            return True
        self._buffer = text[key.end() :]
        streams = self._key == self._streamed and self._buffer[0] == '"' and not self._pieces
        self._at = _At.STRING if streams else _At.VALUE
        if streams:
            self._buffer = self._buffer[1:]
        return True

    def _value(self) -> bool:
        try:
            value, end = _DECODER.raw_decode(self._buffer)
        except (ValueError, RecursionError):
            return False
        after = _BLANK.match(self._buffer, end).end()  # type: ignore[union-attr]  # matches the empty string
        if self._buffer[after : after + 1] not in (",", "}"):  # ``1`` may go on, as ``1.5``
            return False
        self.members[self._key] = value
        self._buffer = self._buffer[after:]
        self._at = _At.KEY
        return True

    def _string(self) -> bool:
        self._pieces.append(self._decoder.feed(self._buffer))
        self._buffer = ""
        if self._decoder.broken:
            self._at = _At.END
        if self._decoder.rest is None:
            return False
        self.members[self._key] = "".join(self._pieces)
        self._buffer = self._decoder.rest
        self._at = _At.KEY
        return True


_DECODER = json.JSONDecoder(strict=False)
