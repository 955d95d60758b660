"""A block's text without its markers, and the way back to where each character came from.

Each marker goes with the blanks before it, and so do the commas between two markers and brackets that hold nothing
else. Where two words would be glued, one space stays. Line breaks become spaces.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from serving.answer import markers
from serving.answer.inline import scan

_JOINT = re.compile(r"\s*+[,;、，；&]?+\s*+")
_HUGS = re.compile(r"[.,;:!?…)\]}\"'”’»。｡．।۔؟、，；：！？）」』】*_~]")
_WRAPS = {"(": ")", "（": "）", "[": "]"}
_SPACE = re.compile(r"\s*+")


class Run(NamedTuple):
    """A marker that was taken out: where it stood in the clean text, and what it named."""

    at: int
    named: markers.Named


class Inline(NamedTuple):
    """A block's clean text (line breaks made spaces) and its markers.

    ``mask`` is as long as ``text``, with letters in place of what is code, math or a link. ``breaks`` are the offsets
    in it of markers that end a line. ``pieces`` map it back: (offset in the text, offset in the source), ascending.
    """

    text: str
    mask: str
    runs: tuple[Run, ...]
    breaks: tuple[int, ...]
    pieces: tuple[tuple[int, int], ...]

    def source_of(self, at: int) -> int:
        """Where in the source the character at ``at`` of the text stands."""
        began, source = self.pieces[bisect_right(self.pieces, at, key=lambda piece: piece[0]) - 1]
        return source + at - began


def clean(text: str, passages: int, *, start: int = 0, final: bool = True) -> Inline:
    """Takes the markers out of ``text[start:]``. Unless ``final``, stops where more text could make a difference."""
    tokens, end = scan(text, passages, start=start, final=final)
    builder = _Builder(text)
    at = start
    for token in tokens:
        builder.keep(at, token.start, before_marker=token.named is not None)
        if token.named is None:
            builder.cover(token.start, token.end)
        else:
            builder.drop(token.named)
        at = token.end
    # What stands between markers goes with them, and another marker may be on its way.
    if final or not builder.may_join(text[at:end]):
        builder.keep(at, end, before_marker=False)
    return builder.made()


class _Builder:
    """Lays the kept stretches of a source end to end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._text: list[str] = []
        self._mask: list[str] | None = None
        self._length = 0
        self._runs: list[Run] = []
        self._breaks: list[int] = []
        self._pieces: list[tuple[int, int]] = []
        self._after_marker = False

    def may_join(self, piece: str) -> bool:
        """Whether ``piece`` stands after a marker and is what joins it to another."""
        return self._after_marker and _JOINT.fullmatch(piece) is not None

    def keep(self, start: int, end: int, *, before_marker: bool) -> None:
        piece = self._source[start:end]
        if before_marker and self.may_join(piece):
            return
        if self._after_marker and piece:
            start, piece = self._unwrap(start, piece)
            if self._length and _ends_line(piece):
                self._breaks.append(self._runs[-1].at)
            if self._length and piece and not piece[0].isspace() and not _HUGS.match(piece):
                self._add(" ", start, " ")
        if before_marker:
            piece = piece.rstrip()
        if not self._length:
            stripped = piece.lstrip()
            start, piece = start + len(piece) - len(stripped), stripped
        if piece:
            self._after_marker = False
            self._lines(piece, start)

    def _lines(self, piece: str, start: int) -> None:
        """Adds a stretch of the source, each line break and the blanks around it made one space."""
        at = 0
        while (line_end := piece.find("\n", at)) >= 0:
            self._add(piece[at:line_end].rstrip(), start + at)
            self._add(" ", start + line_end)
            at = _SPACE.match(piece, line_end).end()  # type: ignore[union-attr]  # matches the empty string
        self._add(piece[at:], start + at)

    def cover(self, start: int, end: int) -> None:
        atom = self._source[start:end].replace("\n", " ")
        if self._after_marker and self._length:
            self._add(" ", start)
        self._after_marker = False
        self._add(atom, start, "X" * len(atom))

    def drop(self, named: markers.Named) -> None:
        self._strip()
        self._runs.append(Run(self._length, named))
        self._after_marker = True

    def _unwrap(self, start: int, piece: str) -> tuple[int, str]:
        """Takes out the bracket that closes after a marker when all it holds is markers: ``([1], [2])``."""
        opened = self._text[-1][-1:] if self._text else ""
        closing = _WRAPS.get(opened)
        if closing is None or not piece.lstrip().startswith(closing):
            return start, piece
        self._shorten(1)
        self._strip()
        for at in range(len(self._runs) - 1, -1, -1):
            if self._runs[at].at <= self._length:
                break
            self._runs[at] = self._runs[at]._replace(at=self._length)
        gone = len(piece) - len(piece.lstrip()) + 1
        return start + gone, piece[gone:]

    def _strip(self) -> None:
        """Takes back the white space at the end: a marker stands right after the text that it follows."""
        while self._text and (blanks := len(self._text[-1]) - len(self._text[-1].rstrip())):
            self._shorten(blanks)

    def _shorten(self, by: int) -> None:
        """Takes back the last characters, which are all of one piece."""
        self._length -= by
        for kept in (self._text, self._mask):
            if kept:
                kept[-1] = kept[-1][:-by]
        if not self._text[-1]:
            self._pieces.pop()
            self._text.pop()
            if self._mask is not None:
                self._mask.pop()

    def _add(self, piece: str, source: int, mask: str | None = None) -> None:
        if not piece:
            return
        if mask is not None and self._mask is None:
            self._mask = list(self._text)
        self._pieces.append((self._length, source))
        self._text.append(piece)
        self._length += len(piece)
        if self._mask is not None:
            self._mask.append(mask or piece)

    def made(self) -> Inline:
        text = "".join(self._text)
        mask = text if self._mask is None else "".join(self._mask)
        return Inline(text, mask, tuple(self._runs), tuple(self._breaks), tuple(self._pieces))


def _ends_line(piece: str) -> bool:
    """Whether a line ends here and no sentence goes on in the next one."""
    after = piece.lstrip()
    return not after[:1].islower() and "\n" in piece[: len(piece) - len(after)]
