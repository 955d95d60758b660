"""The grammar of markers, and what tells one from a bracket that is text.

Read as markers: ``[1]``, ``[1, 2]``, ``[1;2]``, ``[1-3]``, ``[1–3]``, ``[[1]]``, ``[^1]``, ``[1†source]``,
``【1】`` and ``［1］``, with decimal digits of any script. A bracketed number glued to a word is a marker when it is a
passage's number and the word is plain letters; after ``.``, ``_``, a digit, ``)`` or ``]``, or before ``=``, ``(`` or
``.name``, it is an index expression. ``[0]``, a number that is no passage, a range that leaves the passages or runs
backwards are made up: never clamped. A bracketed year is removed and reported, but is no one's idea of a citation and
refuses nothing.

What a bracket stands in (code, math, a link) is :mod:`serving.answer.inline`'s to know.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_DASHES = "\\-‐‑‒–—−"
_SEPARATORS = ",;、，；"
_BLANK = "[ \\t\u00a0\u202f]"
_ITEM = rf"\^?+\d++(?:{_BLANK}?+[{_DASHES}]{_BLANK}?+\d++)?+"
# Possessive throughout: a bracket is scanned once, up to where it stops being a marker.
_NEXT = rf"{_BLANK}{{0,2}}+[{_SEPARATORS}]{_BLANK}{{0,2}}+{_ITEM}"
_BODY = rf"{_BLANK}?+{_ITEM}(?:{_NEXT})*+(?:†[^\[\]【】\n]{{0,80}}+)?+{_BLANK}?+"
# ``【4:0†source】`` is how one vendor's models cite files; it names nothing that was given here.
PATTERN = rf"\[\[{_BODY}\]\]|\[{_BODY}\]|［{_BODY}］|【{_BODY}】|【\d++:\d++(?:†[^】\n]{{0,80}}+)?+】"
_PARTS = re.compile(rf"(\d+)(?:{_BLANK}?([{_DASHES}:]){_BLANK}?(\d+))?")
_LONGEST_WORD = 64
_INDEX_FOLLOWS = re.compile(r"\s?=(?!=)|\(|\.[^\W\d]")
LOOKAHEAD = 3
"""Characters after a marker that decide what it is."""

YEARS = range(1000, 3000)
_MOST_DIGITS = 4  # what has more cannot be a passage, and is never made a number
_SHOWN_DIGITS = 16


class Named(NamedTuple):
    """What a marker names: chunks (0-based, as written), numbers that name none, years. Numbers as written."""

    chunks: tuple[int, ...]
    fabricated: tuple[str, ...]
    years: tuple[str, ...]


def resolve(marker: str, passages: int) -> Named:
    """Reads a whole marker, brackets included, for a reply over ``passages`` numbered passages."""
    inside = marker.partition("†")[0]
    if inside[1:-1].isdecimal() and len(inside) == 3:  # by far the most common: one digit
        number = int(inside[1])
        return Named((number - 1,), (), ()) if 1 <= number <= passages else Named((), (inside[1],), ())
    chunks: list[int] = []
    fabricated: list[str] = []
    years: list[str] = []
    for item in _PARTS.finditer(inside):
        low, joint, high = item[1], item[2], item[3] or item[1]
        if max(len(low), len(high)) > _MOST_DIGITS or joint == ":":
            fabricated.append(item[0][:_SHOWN_DIGITS])
            continue
        first, last = int(low), int(high)
        if 1 <= first <= last <= passages:
            chunks.extend(range(first - 1, last))
        elif first in YEARS and last in YEARS and first <= last:
            years.append(item[0])
        else:
            fabricated.append(item[0])
    return Named(tuple(dict.fromkeys(chunks)), tuple(fabricated), tuple(years))


def is_index(text: str, start: int, end: int, named: Named) -> bool:
    """Whether the bracket at ``text[start:end]``, which follows no other marker, is part of an expression or a link."""
    before = text[start - 1] if start else "\n"
    follows = _INDEX_FOLLOWS.match(text, end)
    if follows and (text[end] == "(" or not before.isspace()):
        return True
    if before == "\n" and text.startswith(":", end):  # ``[1]: https://…`` defines a reference
        return True
    if text[start] == "【":  # no language indexes with these
        return False
    if before in "_)]" or before.isdigit():
        return True
    if before == ".":  # ``Fact.[1] Next`` and ``Fact.[1]Next`` end a sentence; ``os.[1]x`` does not
        after = text[end : end + 1]
        return not (after == "" or after.isspace() or after.isupper() or after in "[【［\"'”’)*,;、")
    return before.isalpha() and not (named.chunks and not named.fabricated and _is_word(text, start))


def _is_word(text: str, end: int) -> bool:
    """Whether what ends at ``end`` is a word of plain letters. Scripts that run words together give one letter each."""
    for at in range(end - 1, max(-1, end - 1 - _LONGEST_WORD), -1):
        letter = text[at]
        if not letter.isalpha():
            return not (letter.isalnum() or letter in "_.()[]")
        if _runs_on(letter):
            return True
    return True


def _runs_on(letter: str) -> bool:
    """Whether the letter's script (Thai, Lao, Myanmar, Chinese, Japanese, …) puts no spaces between words."""
    return "\u0e00" <= letter <= "\u0eff" or "\u1000" <= letter <= "\u109f" or "\u2e80" <= letter <= "\uffdc"
