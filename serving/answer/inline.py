r"""Inside a block: where its markers are, and what no marker and no sentence end can stand in (code, math, links).

One pass, linear time. Code spans are CommonMark's (§6.1), math is what lies between ``$…$`` on one line, ``$$…$$``,
``\(…\)`` or ``\[…\]``; ``$5`` is none. Links, images, autolinks and bare URLs are text. Citation spans of the private
use area (U+E200 … U+E201), which some models leak, go with the markers, also when the end of the text cuts them off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from serving.answer import markers

MARGIN = 8
"""Characters at the end of a text to be continued in which nothing is decided: what begins there may be anything."""

_LINK_TEXT = r"\[(?:[^\[\]\\\n]|\\.|\[[^\[\]\n]{0,100}+\]){0,300}+"
_TARGET = r"\([ \t]?+[^\s()]{0,600}+"
_NESTED, _TITLE = r"\([^\s()]{0,200}+", r"[ \t]{1,9}+\"[^\"\n]{0,200}+"
_LINK = re.compile(rf"{_LINK_TEXT}\]{_TARGET}(?:{_NESTED}\)[^\s()]{{0,200}}+)?+(?:{_TITLE}\")?+[ \t]?+\)")
_OPEN_TITLE = rf"(?:{_TITLE}\"?+[ \t]?+|[ \t]{{1,9}}+)?+"
_OPEN_TARGET = rf"{_TARGET}(?:{_NESTED}(?:\)[^\s()]{{0,200}}+)?+)?+{_OPEN_TITLE}\Z"
_OPEN_LINK = re.compile(rf"{_LINK_TEXT}(?:\\?+\Z|\[[^\[\]\n]{{0,100}}+\Z|\](?:\Z|{_OPEN_TARGET}))")
_MARKER = re.compile(markers.PATTERN)
_OPEN_MARKER = re.compile(r"[\[【［]{1,2}[^\[\]【】［］\n]*+[\]】］]{0,2}\Z")
_DOLLARS = re.compile(r"(?<![\w$\\])\$(?![\s$])([^$\n]{1,300}+)\$(?!\w)")
_OPEN_DOLLAR = re.compile(r"\$[^$\n]{0,300}+(?:\$\Z|\Z)")
_SENTENCE_END = re.compile(r"[.!?]\s")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`【】［］（）。，、；「」]*+")
_AFTER_URL = ".,;:!?)*_'\""
_AUTOLINK = re.compile(r"<(?:https?://|mailto:)[^<>\s]{0,2000}+>")
_OPEN_AUTOLINK = re.compile(r"<[^<>\s]{0,2000}+\Z")
_LEAK = re.compile("\ue200[^\ue200\ue201\n]{0,2000}+\ue201|\ue200[^\\s\ue200\ue201]*+|[\ue201-\ue206]")
_OPEN_LEAK = re.compile("\ue200[^\ue200\ue201\n]{0,2000}+\\Z")
_SPECIAL = re.compile("[\\[【［`$<\\\\\ue200-\ue206]|https?://|www\\.")
_BACKTICKS = re.compile(r"`+")
_LATEX = {"\\(": "\\)", "\\[": "\\]"}
_LONGEST_MATH = 2000


class Token(NamedTuple):
    """A stretch of the source: a marker when it names something, an atom to be left alone otherwise."""

    start: int
    end: int
    named: markers.Named | None


NOTHING = markers.Named((), (), ())


def scan(text: str, passages: int, *, start: int = 0, final: bool = True) -> tuple[list[Token], int]:
    """The tokens of ``text[start:]`` in order, and up to where they are certain (``len(text)`` when ``final``).

    Unless ``final``, more text may follow: a token is given only when no continuation could change it.
    """
    return _Scanner(text, passages, start, final=final).run()


class _Scanner:
    def __init__(self, text: str, passages: int, start: int, *, final: bool) -> None:
        self._text = text
        self._passages = passages
        self._start = start
        self._final = final
        self._limit = len(text) if final else max(start, len(text) - MARGIN)
        self._run_end = -1
        self._closing: dict[int, list[int]] | None = None

    def run(self) -> tuple[list[Token], int]:
        text, at = self._text, self._start
        tokens: list[Token] = []
        while (match := _SPECIAL.search(text, at)) is not None and match.start() < self._limit:
            start = match.start()
            found = self._token(match[0], start)
            if found is None:
                return tokens, start
            if isinstance(found, int):
                at = found
            elif not self._final and found.end > self._limit:
                return tokens, start
            else:
                tokens.append(found)
                at = found.end
        return tokens, self._limit

    def _token(self, special: str, start: int) -> Token | int | None:
        """The token that begins here, where to go on when none does, or None when that is not known yet."""
        kind = _KINDS.get(special)
        if kind is not None:
            return kind(self, start)
        if special >= "\ue200":
            leak = self._either(_LEAK, _OPEN_LEAK, start)
            return leak._replace(named=NOTHING) if isinstance(leak, Token) else leak
        end = _URL.match(self._text, start).end()  # type: ignore[union-attr]  # it begins as one
        while self._text[end - 1] in _AFTER_URL:
            end -= 1
        return Token(start, end, None)

    def autolink(self, start: int) -> Token | int | None:
        return self._either(_AUTOLINK, _OPEN_AUTOLINK, start)

    def _either(self, whole: re.Pattern[str], opened: re.Pattern[str], start: int) -> Token | int | None:
        if not self._final and opened.match(self._text, start):
            return None
        match = whole.match(self._text, start)
        return Token(start, match.end(), None) if match else start + 1

    def bracket(self, start: int) -> Token | int | None:
        text = self._text
        if text[start] == "[" and (link := _LINK.match(text, start)):
            return Token(start, link.end(), None)
        match = _MARKER.match(text, start)
        end = match.end() if match else start + 1
        if not self._final and (
            end + markers.LOOKAHEAD > len(text) or _OPEN_MARKER.match(text, start) or _OPEN_LINK.match(text, start)
        ):
            return None
        if match is None:
            return end
        named = markers.resolve(match[0], self._passages)
        if text.startswith("(", end) or (start != self._run_end and markers.is_index(text, start, end, named)):
            return end
        self._run_end = end
        return Token(start, end, named)

    def code(self, start: int) -> Token | int | None:
        """A code span: a run of backticks is closed by the next run of the same length."""
        text = self._text
        if self._closing is None:
            self._closing = {}
            for match in _BACKTICKS.finditer(text, start):
                self._closing.setdefault(match.end() - match.start(), []).append(match.start())
            for starts in self._closing.values():
                starts.reverse()
        end = _BACKTICKS.match(text, start).end()  # type: ignore[union-attr]  # it begins as one
        if not self._final and end == len(text):
            return None
        starts = self._closing.get(end - start, [])
        while starts and starts[-1] < end:
            starts.pop()
        if starts and (self._final or starts[-1] + end - start < len(text)):
            return Token(start, starts.pop() + end - start, None)
        return end if self._final else None

    def math(self, start: int) -> Token | int | None:
        text = self._text
        if text.startswith("$$", start):
            return self._until("$$", start)
        if not self._final and _OPEN_DOLLAR.match(text, start):
            return None
        match = _DOLLARS.match(text, start)
        if match is None or match[1][-1] in " \t\\" or _SENTENCE_END.search(match[1]):
            return start + 1
        return Token(start, match.end(), None)

    def backslash(self, start: int) -> Token | int | None:
        closing = _LATEX.get(self._text[start : start + 2])
        found = self._until(closing, start) if closing else start + 2
        return start + 2 if isinstance(found, int) else found  # an escaped character begins nothing

    def _until(self, closing: str, start: int) -> Token | int | None:
        end = self._text.find(closing, start + 2, start + _LONGEST_MATH)
        if end >= 0:
            return Token(start, end + 2, None)
        return start + 2 if self._final or len(self._text) >= start + _LONGEST_MATH else None


_KINDS: dict[str, Callable[[_Scanner, int], Token | int | None]] = {
    "[": _Scanner.bracket,
    "【": _Scanner.bracket,
    "［": _Scanner.bracket,
    "`": _Scanner.code,
    "$": _Scanner.math,
    "\\": _Scanner.backslash,
    "<": _Scanner.autolink,
}


def leaks_removed(text: str) -> str:
    """The text without private-use-area citation spans, for blocks that are not parsed further."""
    return _LEAK.sub("", text) if max(text, default="") >= "\ue200" else text
