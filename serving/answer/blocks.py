"""Lines: which kind of Markdown block each one begins or goes on with.

Only what shapes claims is told apart. Indentation alone makes no code: models indent lists as they like. A line that
is not complete yet gets its kind once no continuation could change it.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    BLANK = auto()
    TEXT = auto()
    ITEM = auto()
    HEADING = auto()
    ROW = auto()
    FENCE = auto()
    MATH = auto()
    RULE = auto()


class Line(NamedTuple):
    """``prefix`` is the block syntax before the content, ``body`` the rest, line break excluded.

    ``quoted``: the line stands in a block quote, whose ``>`` are in neither. ``fence`` is what opened a code or math
    block.
    """

    kind: Kind
    prefix: str
    body: str
    quoted: bool = False
    fence: str = ""


_QUOTE = re.compile(r"(?:[ \t]{0,8}>[ \t]?)+")
_BULLET = r"(?:[-*+•◦▪‣·]|\d{1,3}[.)])"
_ITEM = re.compile(rf"(?:[ \t]*{_BULLET}[ \t]+(?=\S))+")
_NUMBERED = re.compile(r"[ \t]*(\d{1,3})[.)]")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+(?=\S)")
_EMPTY_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]*\Z")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|=+[ \t]*|-+[ \t]*)\Z")
_ALIGNMENT = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_MATH = re.compile(r"[ \t]*(\$\$|\\\[)")
_OPENS_BLOCK = r"`{3,}(?=[^`]*\Z)|~{3,}|\$\$(?!.*\$\$)|\\\[(?!.*\\\])"
_SYNTAX = re.compile(rf"(?:[ \t]*(?:{_BULLET}[ \t]+|#{{1,6}}[ \t]+|>|\||{_OPENS_BLOCK}))+[ \t]*")
_DECIDING = 16
"""Characters of a line's content that tell its kind, unless all of it is needed."""
_NEEDS_ALL = frozenset(">|`~$\\=_#")


def classify(line: str, *, in_text: bool) -> Line:
    """The kind of a whole line.

    ``in_text`` says that it follows a line of a paragraph: there a number that is not 1 begins no list (``built in`` /
    ``1889. It …``).
    """
    quote = _QUOTE.match(line)
    quoted = quote is not None
    body = line[quote.end() :] if quote else line
    content = body.strip()
    if not content or content[0].isalpha():  # as most lines: no syntax begins with a letter
        return Line(Kind.TEXT if content else Kind.BLANK, "", body, quoted)
    if _RULE.match(body) or _EMPTY_HEADING.match(body):
        return Line(Kind.RULE, "", body, quoted)
    prefix = _item(body, in_text=in_text)
    rest = body[len(prefix) :]
    if opened := _opens(rest):
        return Line(Kind.FENCE if opened[0] in "`~" else Kind.MATH, prefix, rest, quoted, opened)
    if not prefix and (heading := _HEADING.match(body)):
        return Line(Kind.HEADING, heading[0], body[heading.end() :], quoted)
    row = content[0] == "|" and len(content) > 1 and (content[-1] == "|" or content.count("|") > 1)
    return Line(Kind.ITEM if prefix else Kind.ROW if row else Kind.TEXT, prefix, rest, quoted)


def classify_early(line: str, *, in_text: bool) -> Line | None:
    """The kind of a line of which more may follow; None while that could make it another."""
    found = classify(line, in_text=in_text)
    content = found.body.strip()
    if found.kind not in (Kind.TEXT, Kind.ITEM) or found.quoted or len(content) < _DECIDING:
        return None
    return None if content[0] in _NEEDS_ALL else found


def _item(body: str, *, in_text: bool) -> str:
    """The list syntax that a line begins with, empty when it is no list item."""
    item = _ITEM.match(body)
    if item is None or (in_text and (number := _NUMBERED.match(body)) and number[1] != "1"):
        return ""
    return item[0]


def _opens(body: str) -> str:
    """What opens a block of code or math at this line, empty when nothing does."""
    if (fence := _FENCE.match(body)) and (fence[1][0] == "~" or "`" not in body[fence.end() :]):
        return fence[1]
    if math := _MATH.match(body):
        closing = CLOSING_MATH[math[1]]
        if closing not in body[math.end() :]:
            return math[1]
    return ""


CLOSING_MATH = {"$$": "$$", "\\[": "\\]"}


def closes(line: str, fence: str, *, quoted: bool) -> bool:
    """Whether a line ends the code or math block that ``fence`` opened."""
    body = unquoted(line) if quoted else line
    if fence in CLOSING_MATH:
        return CLOSING_MATH[fence] in body
    stripped = body.strip()
    return len(stripped) >= len(fence) and stripped == fence[0] * len(stripped)


def leaves_quote(line: str) -> bool:
    return _QUOTE.match(line) is None


def unquoted(line: str) -> str:
    """A line of a block quote without its ``>``."""
    quote = _QUOTE.match(line)
    return line[quote.end() :] if quote else line


def cells(row: str) -> tuple[str, str, str]:
    """A table row in three: up to its first cell, the cells with the pipes between them, the rest."""
    body = row.rstrip()
    inner = body.lstrip(" \t").removeprefix("|").lstrip()
    start = len(body) - len(inner)
    inner = inner.removesuffix("|").rstrip()
    return row[:start], inner, row[start + len(inner) :]


def is_alignment(row: str) -> bool:
    """Whether a row is the line of dashes under a table's header."""
    return _ALIGNMENT.match(row) is not None


def syntax(text: str) -> int:
    """How many characters at the start of ``text`` would make it another block than a paragraph."""
    if _RULE.match(text) or _EMPTY_HEADING.match(text):
        return len(text)
    found = _SYNTAX.match(text)
    return found.end() if found else 0
