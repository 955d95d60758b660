"""From a document to passages: by heading first, then by size, at the softest seam there is.

Seams from soft to hard: between paragraphs and code blocks, between sentences, list items and table rows, and only when
one of these is by itself more than :data:`MAX_WORDS`, between words (or lines of code).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.answer.types import Passage
from serving.retrieval.documents import Document
from serving.retrieval.markdown import FenceTracker, sections
from serving.retrieval.records import passage_id

TARGET_WORDS = 180
"""A piece is filled up to this many words."""

MAX_WORDS = 2 * TARGET_WORDS
"""No piece is longer. Between the two are single code blocks and sentences, left whole."""

TINY_WORDS = 30
"""A last piece below this joins the one before."""

_LONG_WORD_CHARACTERS = 16
_SENTENCE_SEAM = re.compile(
    # After a terminator and closing quotes, before what can start a sentence; or before a list item, row or quote.
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)[\"')\]’”]*\s+(?=[\"'(\[`*_‘“]*[A-Z0-9])"
    r"|(?<=[。！？])"
    r"|\n(?=[ \t]*(?:[-*+|>]|\d+[.)])[ \t])"
)
_WORD_RUN = re.compile(r"\S{1,1024}\s*")


def passages(document: Document) -> Iterator[Passage]:
    """The passages of a document in reading order. A heading with no text below gives none.

    Passages that come ready stay as they are.
    """
    if document.ready is not None:
        yield from document.ready
        return
    for section in sections(document.text):
        for piece in pieces(section.text):
            yield passage(document, section.heading_path, piece)


def passage(document: Document, heading_path: tuple[str, ...], text: str) -> Passage:
    """One passage of a document."""
    return Passage(
        id=passage_id(document.source, document.source_path, heading_path, text),
        text=text,
        title=document.title,
        url=document.url,
        source=document.source,
        heading_path=heading_path,
        source_path=document.source_path,
        repo_path=document.repo_path,
        commit_sha=document.commit_sha,
        published_at=document.published_at,
    )


def first_heading(text: str) -> str | None:
    """The first heading of level one."""
    return next(
        (section.heading_path[-1] for section in sections(text) if section.level == 1 and section.heading_path), None
    )


def pieces(text: str) -> list[str]:
    """Cut the text of one section into pieces of about :data:`TARGET_WORDS` words, without overlap.

    Joined, they hold every word in order. Where a code block has to be cut, each part gets its own fences.
    """
    filled: list[str] = []
    current, size = "", 0
    for unit in _units(text):
        weight = _weight(unit)
        if current and size + weight > TARGET_WORDS:
            filled.append(current)
            current, size = "", 0
        current += unit
        size += weight
    filled.append(current)
    if len(filled) > 1 and size < TINY_WORDS and _weight(filled[-2]) + size <= MAX_WORDS:
        filled[-2:] = [filled[-2] + filled[-1]]
    return [piece.strip("\n").rstrip() for piece in filled if piece.strip()]


def _weight(text: str) -> int:
    """Words, a long one counted as several: an address or a sentence in Chinese is more than one word of English."""
    return sum(1 + len(word) // _LONG_WORD_CHARACTERS for word in text.split())


def _units(text: str) -> Iterator[str]:
    """What is not cut further, each with the white space that follows it."""
    for block, is_code in _blocks(text):
        if _weight(block) <= TARGET_WORDS:
            yield block + "\n\n"
            continue
        units = _code_units(block) if is_code else _prose_units(block)
        *head, last = units
        yield from head
        yield last + "\n\n"


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs and fenced code blocks, each with whether it is code."""
    fences = FenceTracker()
    block: list[str] = []
    was_code = False
    for line in text.split("\n"):
        is_code = fences.feed(line)
        if block and (is_code != was_code or (not is_code and not line.strip())):
            yield "\n".join(block), was_code
            block = []
        was_code = is_code
        if is_code or line.strip():
            block.append(line)
    if block:
        yield "\n".join(block), was_code


def _prose_units(block: str) -> Iterator[str]:
    start = 0
    for end in [*(seam.end() for seam in _SENTENCE_SEAM.finditer(block)), len(block)]:
        sentence = block[start:end]
        start = end
        if _weight(sentence) > MAX_WORDS:
            yield from _WORD_RUN.findall(sentence)
        elif sentence:
            yield sentence


def _code_units(block: str) -> Iterator[str]:
    if _weight(block) <= MAX_WORDS:
        yield block
        return
    opening, *lines = block.split("\n")
    mark = re.match(r"\s*(?:`+|~+)", opening)
    closing = mark.group() if mark else "```"
    if lines and lines[-1].strip() == closing.strip():
        lines.pop()
    held: list[str] = []
    size = 0
    for line in lines:
        for run in _WORD_RUN.findall(line) if _weight(line) > TARGET_WORDS else [line]:
            if held and size + _weight(run) > TARGET_WORDS:
                yield "\n".join([opening, *held, closing, ""])
                held, size = [], 0
            held.append(run)
            size += _weight(run)
    yield "\n".join([opening, *held, closing])
