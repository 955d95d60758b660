"""Cuts a long text into pieces that fit a model's window, at the ends of sentences where it can, else between words."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)\]]*(?=\s)|[。！？]|\n")
_WORD_END = re.compile(r"(?<=\S)(?=\s)")
_OVERLAP = 8  # a piece repeats up to an eighth of the one before, so that neighbouring sentences meet in one piece


def split(text: str, offsets: Sequence[tuple[int, int]], room: int) -> list[str]:
    """Pieces of ``text`` of at most ``room`` tokens that together cover it, in order.

    ``offsets`` are the code-point ranges of the tokens of ``text``. A text that fits comes back whole.
    """
    if len(offsets) <= room:
        return [text]
    pieces: list[str] = []
    first, begin = 0, 0  # the token and the character that the next piece begins with
    while len(offsets) - first > room:
        last = first + room  # the first token that does not fit
        middle = max(begin, offsets[(first + last) // 2][0])
        end = _cut(text, middle, max(middle + 1, offsets[last][0]))
        pieces.append(text[begin:end])
        cut = _token_after(offsets, end, first, last)
        begin = _resume(text, max(begin, offsets[max(first, cut - room // _OVERLAP)][0]), end)
        first = _token_after(offsets, begin, first, last)
    pieces.append(text[begin:])
    return pieces


def _cut(text: str, low: int, high: int) -> int:
    """Where to end a piece: the last sentence end in ``(low, high]``, else the last word end, else ``high``."""
    for boundary in (_SENTENCE_END, _WORD_END):
        # One character more is looked at, since an end is known by what follows.
        ends = [match.end() for match in boundary.finditer(text, low, min(len(text), high + 1)) if match.end() <= high]
        if ends and ends[-1] > low:
            return ends[-1]
    return high


def _token_after(offsets: Sequence[tuple[int, int]], position: int, low: int, high: int) -> int:
    """The first token in ``[low, high]`` with anything at or after ``position``: a cut may go through a token."""
    while high > low and offsets[high - 1][1] > position:
        high -= 1
    return high


def _resume(text: str, earliest: int, end: int) -> int:
    """Where the piece after one that ended at ``end`` begins: with a sentence between the two, else at ``end``."""
    match = _SENTENCE_END.search(text, earliest, max(earliest, end - 1))
    return match.end() if match else end
