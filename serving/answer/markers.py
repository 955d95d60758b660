"""Finding markers: ``[1]``, ``[1][2]``, ``[1, 2]``, ``[1-3]`` in a reply, and telling them from brackets that are text.

The rules are DESIGN's: a bracketed number glued to a word is a marker when it is a passage's number and the word is
plain letters; after ``_``, a digit, ``)`` or ``]``, or before ``=``, ``(`` or ``.name``, it is an index expression; in
code it is text. ``[0]``, a number that is no passage, a range that leaves the passages or runs backwards are made up.
A bracketed year is removed and reported, but is no one's idea of a citation and refuses nothing.

Everything here is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

# Long digit runs are never expanded: what has more than four digits cannot be a passage.
_NUMBER = r"\d{1,4}"
_ITEM = rf"{_NUMBER}(?:\s?[-–]\s?{_NUMBER})?"
_MARKER = re.compile(rf"\[({_ITEM}(?:\s?[,;]\s?{_ITEM}){{0,31}})\]|\[(\d{{5,}})\]")
_RANGE = re.compile(rf"({_NUMBER})\s?[-–]\s?({_NUMBER})")
_GLUED_WORD = re.compile(r"[\w.()\[\]]{1,64}\Z")
_INDEX_FOLLOWS = re.compile(r"\s?=(?!=)|\(|\.[^\W\d]")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")
YEARS = range(1000, 3000)


class Marker(NamedTuple):
    """One bracketed marker: code-point offsets, the chunks (0-based) it names, the numbers that name none."""

    start: int
    end: int
    chunks: tuple[int, ...]
    fabricated: tuple[str, ...]
    years: tuple[str, ...]


def find(text: str, passages: int) -> Iterator[Marker]:
    """Yields the markers of ``text`` in order, for a reply over ``passages`` numbered passages."""
    code = code_ranges(text)
    starts = [start for start, _ in code]
    previous_end = -1
    for match in _MARKER.finditer(text):
        at = bisect_right(starts, match.start()) - 1
        if at >= 0 and match.start() < code[at][1]:
            continue
        chunks, fabricated, years = _resolve(match, passages)
        in_run = match.start() == previous_end
        if not in_run and _is_index(text, match, cites=bool(chunks) and not fabricated):
            continue
        previous_end = match.end()
        yield Marker(match.start(), match.end(), chunks, fabricated, years)


def _resolve(match: re.Match[str], passages: int) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    if match[2] is not None:
        return (), (match[2][:16],), ()
    chunks: list[int] = []
    fabricated: list[str] = []
    years: list[str] = []
    for item in re.split(r"[,;]", match[1]):
        ends = _RANGE.fullmatch(item.strip())
        low, high = (int(ends[1]), int(ends[2])) if ends else (int(item), int(item))
        if 1 <= low <= high <= passages:
            chunks.extend(range(low - 1, high))
        elif not ends and low in YEARS:
            years.append(item.strip())
        else:
            fabricated.append(item.strip())
    return tuple(dict.fromkeys(chunks)), tuple(fabricated), tuple(years)


def _is_index(text: str, match: re.Match[str], *, cites: bool) -> bool:
    """Whether the bracket is glued to an expression, so that it indexes it."""
    before = text[match.start() - 1] if match.start() else " "
    if _INDEX_FOLLOWS.match(text, match.end()) and not before.isspace():
        return True
    if before in "_)]" or before.isdigit():
        return True
    if before == ".":  # ``Fact.[1] Next`` and ``Fact.[1]Next`` end a sentence; ``os.[1]x`` does not
        after = text[match.end() : match.end() + 1]
        return not (after == "" or after.isspace() or after.isupper() or after in "[\"'”’)")
    if not before.isalpha():
        return False
    word = _GLUED_WORD.search(text, max(0, match.start() - 64), match.start())
    return not (cites and word is not None and word[0].isalpha())


def code_ranges(text: str) -> list[tuple[int, int]]:
    """Half-open code-point ranges of fenced blocks (an unterminated one runs to the end) and inline code."""
    fences = _fenced(text)
    ranges: list[tuple[int, int]] = []
    at = 0
    for start, end in fences:
        ranges.extend(_inline(text, at, start))
        ranges.append((start, end))
        at = end
    ranges.extend(_inline(text, at, len(text)))
    return ranges


def _fenced(text: str) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = (match.start(), match[1])
        elif match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]):
            end = text.find("\n", match.end())
            ranges.append((opened[0], len(text) if end < 0 else end))
            opened = None
    if opened is not None:
        ranges.append((opened[0], len(text)))
    return ranges


def _inline(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Code spans of CommonMark §6.1: a backtick run is closed by the next run of the same length."""
    runs = [(match.start(), match.end()) for match in _BACKTICKS.finditer(text, start, end)]
    following: dict[int, list[int]] = {}
    for index in range(len(runs) - 1, -1, -1):
        following.setdefault(runs[index][1] - runs[index][0], []).append(index)
    index = 0
    while index < len(runs):
        same_length = following[runs[index][1] - runs[index][0]]
        while same_length and same_length[-1] <= index:
            same_length.pop()
        if same_length:
            closing = same_length.pop()
            yield runs[index][0], runs[closing][1]
            index = closing + 1
        else:
            index += 1
