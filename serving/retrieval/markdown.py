"""Markdown as far as cutting needs it: fenced code, and sections under their heading path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Bounded, as the opening line is repeated where a long block is cut.
_FENCE = re.compile(r"[ \t]*(`{3,20}(?=[^`]*$)|~{3,20})(.{0,200})$")
MAX_HEADING = 500
"""A heading line of more characters is text. It would stand in every passage below it."""

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_NOT_A_SETEXT_TITLE = re.compile(r"\s*$| {4}|\t| {0,3}(?:[-*+>|#]|\d+[.)])(?:\s|$)|.*\|")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[\w-]+[ \t]*:)(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")

_IMAGE = re.compile(r"!\[[^\[\]]*\](?:\([^)]*\)|\[[^\]]*\])")
_LINK = re.compile(r"\[([^\[\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|\{#[^}]*\}")
# Not with underscores: in a heading they are far more often those of `__init__`.
_EMPHASIS = re.compile(r"(\*\*|\*|`)(?=\S)([^*`]+)(?<=\S)\1")


class Section(NamedTuple):
    """The text under one heading, up to the next; level 0 and an empty path before the first heading."""

    level: int
    heading_path: tuple[str, ...]
    text: str


class FenceTracker:
    """Fed the lines of a text in order, says of each whether it belongs to fenced code, the fences included."""

    def __init__(self) -> None:
        self._open = ""

    def feed(self, line: str) -> bool:
        match = _FENCE.match(line)
        if not self._open:
            if match:
                self._open = match[1]
            return match is not None
        # Closed by the same character, at least as many of it, and nothing after.
        if match and match[1].startswith(self._open) and not match[2].strip():
            self._open = ""
        return True


def sections(text: str) -> Iterator[Section]:
    """The sections of ``text`` in order, also those with no text of their own. Front matter is left out.

    Headings are `# ATX` and underlined ones (setext, of one line); a `#` line inside fenced code is code.
    """
    lines = _FRONT_MATTER.sub("", text, count=1).split("\n")
    fences = FenceTracker()
    path: list[tuple[int, str]] = []
    body: list[str] = []
    skip = False
    for number, line in enumerate(lines):
        if skip:
            skip = False
            continue
        found = None if fences.feed(line) else _heading(lines, number)
        if found is None:
            body.append(line)
            continue
        yield _section(path, body)
        level, title, skip = found
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
        body = []
    yield _section(path, body)


def plain(text: str) -> str:
    """A heading without its markup: links and emphasis as their text, no images, tags or anchors."""
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    return " ".join(_EMPHASIS.sub(r"\2", _TAG.sub("", text)).split())


def _section(path: list[tuple[int, str]], body: list[str]) -> Section:
    titles = tuple(title for _, title in path if title)
    return Section(path[-1][0] if path else 0, titles, "\n".join(body).strip("\n"))


def _heading(lines: list[str], number: int) -> tuple[int, str, bool] | None:
    """Level, title, and whether the next line belongs to it (as its underline)."""
    line = lines[number]
    if len(line) > MAX_HEADING:
        return None
    if match := _ATX.match(line):
        return len(match[1]), plain(_without_closing_marks((match[2] or "").strip())), False
    underline = _SETEXT.match(lines[number + 1]) if number + 1 < len(lines) else None
    # Only a paragraph of one line: under a longer one, dashes are a rule far more often than a heading.
    starts_paragraph = number == 0 or not lines[number - 1].strip() or _ATX.match(lines[number - 1]) is not None
    if underline and starts_paragraph and not _NOT_A_SETEXT_TITLE.match(line):
        return (1 if underline[1][0] == "=" else 2), plain(line.strip()), True
    return None


def _without_closing_marks(title: str) -> str:
    """``Title ##`` is ``Title``, and ``C#`` is ``C#``."""
    bare = title.rstrip("#")
    return bare.rstrip() if bare == "" or bare[-1].isspace() else title
