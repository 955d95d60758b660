"""From a model's reply to claims: clean text, claims with byte spans and 0-based chunks, fabricated markers.

One pass, linear time. The reply is first freed of its markers (:mod:`serving.answer.markers`), then cut into blocks
(paragraphs, list items, headings, table rows, code) and those into sentences (:mod:`serving.answer.sentences`). A
marker run belongs to the sentence it stands in or follows, also after the full stop. :func:`rebuild` is the way back:
survivors in, text out, and the separators between them are its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from serving.answer import markers, sentences
from serving.answer.types import Claim, Span


class Block(StrEnum):
    PARAGRAPH = "paragraph"
    ITEM = "item"
    HEADING = "heading"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim and the block it stands in: ``block`` numbers the blocks, ``prefix`` is list syntax (``"- "``)."""

    claim: Claim
    kind: Block
    block: int
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A parsed reply. ``text`` is the reply without markers; every span points into it.

    ``fabricated`` are the numbers, as written, that name no passage; ``years`` are bracketed years, removed and
    reported but held against no one.
    """

    text: str
    statements: tuple[Statement, ...]
    fabricated: tuple[str, ...] = ()
    years: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    """A marker that was taken out: where it stood in the clean text, and what it said."""

    at: int
    chunks: tuple[int, ...]
    fabricated: tuple[str, ...]


_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,4}[.)])[ \t]+")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}(?:[ \t]|$)")
_TABLE_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*$")
_BLANKS = re.compile(r"[ \t]*")
_MARKERS_TO_LINE_END = re.compile(r"(?:\[[\d ,;–-]{1,64}\][ \t]*){1,32}$", re.MULTILINE)
_JOINS = re.compile(r"[\s.,;:!?)\]}\"'”’»。、！？」』]")


def parse(reply: str, passages: int) -> Reply:
    """Parses a reply written over ``passages`` numbered passages. Accepts any string and never raises.

    Lone surrogates, which no UTF-8 text can hold, become U+FFFD.
    """
    reply = reply.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _has_surrogates(reply) else reply
    text, runs, years = _strip(reply, passages)
    statements: list[Statement] = []
    next_run = 0
    byte_at = char_at = 0
    for kind, block, prefix, start, end in _sentences(text):
        byte_start = byte_at + _size(text[char_at:start])
        byte_end = byte_start + _size(text[start:end])
        byte_at, char_at = byte_end, end
        mine: list[_Run] = []
        while next_run < len(runs) and runs[next_run].at <= end:
            if runs[next_run].at > start:
                mine.append(runs[next_run])
            next_run += 1
        sentence = text[start:end]
        claim = Claim(
            text=sentence,
            span=Span(byte_start, byte_end),
            chunks=tuple(sorted({chunk for run in mine for chunk in run.chunks})),
            fabricated=tuple(number for run in mine for number in run.fabricated),
            complete=kind is not Block.PARAGRAPH or sentences.is_terminated(sentence) or bool(text[end:].strip()),
        )
        statements.append(Statement(claim, kind, block, prefix))
    fabricated = tuple(number for run in runs for number in run.fabricated)
    return Reply(text, tuple(statements), fabricated, years)


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _size(text: str) -> int:
    return len(text.encode())


def _strip(reply: str, passages: int) -> tuple[str, list[_Run], tuple[str, ...]]:
    """Takes the markers out, each with the blanks before it. Where that would glue two words, one space stays."""
    pieces: list[str] = []
    runs: list[_Run] = []
    years: list[str] = []
    at = length = 0
    for marker in markers.find(reply, passages):
        kept = reply[at : marker.start].rstrip(" \t")
        last = kept[-1:] or (pieces[-1][-1:] if pieces else "\n")
        alone = last == "\n" and _MARKERS_TO_LINE_END.match(reply, marker.start)
        above = kept[-2:-1] or (pieces[-1][-1:] if pieces else "\n")
        if alone and above != "\n":  # a line of markers only belongs to the line before it
            kept = kept.removesuffix("\n")
            last = above
        if kept:
            pieces.append(kept)
            length += len(kept)
        runs.append(_Run(length, marker.chunks, marker.fabricated))
        years.extend(marker.years)
        at = marker.end
        if last == "\n":
            at = _BLANKS.match(reply, at).end()  # type: ignore[union-attr]  # matches the empty string
        elif at < len(reply) and reply[at] != "[" and not _JOINS.match(reply, at):
            pieces.append(" ")
            length += 1
    pieces.append(reply[at:])
    return "".join(pieces), runs, tuple(years)


def _sentences(text: str) -> Iterator[tuple[Block, int, str, int, int]]:
    """Yields (kind, block number, list prefix, start, end) of each sentence, white space trimmed, in order."""
    for block, (kind, prefix, start, end) in enumerate(_blocks(text)):
        if kind not in (Block.PARAGRAPH, Block.ITEM):
            yield kind, block, prefix, start, end
            continue
        at = start
        for piece in sentences.split(text[start:end]):
            stripped = piece.strip()
            if stripped:
                lead = len(piece) - len(piece.lstrip())
                yield kind, block, prefix, at + lead, at + lead + len(stripped)
            at += len(piece)


def _blocks(text: str) -> Iterator[tuple[Block, str, int, int]]:
    """Yields (kind, list prefix, start, end) of each block, prefix excluded, in order. Lines join into paragraphs."""
    code = [span for span in markers.code_ranges(text) if "\n" in text[span[0] : span[1]]]
    code_at = 0
    open_block: tuple[Block, str, int, int] | None = None
    at = 0
    for line in text.splitlines(keepends=True):
        start, end = at, at + len(line)
        at = end
        while code_at < len(code) and code[code_at][1] <= start:
            code_at += 1
        in_code = code_at < len(code) and code[code_at][0] <= start + (len(line) - len(line.lstrip()))
        kind, prefix = _line_kind(line, in_code=in_code)
        body = (start + len(prefix), start + len(line.rstrip()))
        joins = open_block is not None and (
            (kind is Block.CODE and open_block[0] is Block.CODE)
            or (kind is Block.PARAGRAPH and open_block[0] in (Block.PARAGRAPH, Block.ITEM))
        )
        if kind is None:
            if open_block:
                yield open_block
            open_block = None
        elif joins and open_block is not None:
            open_block = (open_block[0], open_block[1], open_block[2], body[1])
        else:
            if open_block:
                yield open_block
            open_block = (kind, prefix, *body)
    if open_block:
        yield open_block


def _line_kind(line: str, *, in_code: bool) -> tuple[Block | None, str]:
    if in_code:
        return Block.CODE, ""
    if not line.strip():
        return None, ""
    if _HEADING.match(line):
        return Block.HEADING, ""
    if _TABLE_ROW.match(line):
        return Block.TABLE, ""
    item = _ITEM.match(line)
    return (Block.ITEM, item[0]) if item else (Block.PARAGRAPH, "")


def rebuild(survivors: Sequence[Statement]) -> tuple[str, list[Span]]:
    """Makes the answer text of the surviving statements and says where each now stands, in UTF-8 bytes.

    Sentences of one block are joined by a space, items of a list by a line break, blocks by an empty line. A list of
    which one item is left is no list: its item becomes a paragraph.
    """
    items = [s for s in survivors if s.kind is Block.ITEM]
    as_list = len({s.block for s in items}) > 1
    pieces: list[str] = []
    spans: list[Span] = []
    size = 0
    previous: Statement | None = None
    for statement in survivors:
        lead = _separator(previous, statement, as_list=as_list)
        body = statement.claim.text
        start = size + _size(lead)
        size = start + _size(body)
        spans.append(Span(start, size))
        pieces += (lead, body)
        previous = statement
    return "".join(pieces), spans


def _separator(previous: Statement | None, statement: Statement, *, as_list: bool) -> str:
    starts_item = statement.kind is Block.ITEM and as_list and (previous is None or previous.block != statement.block)
    bullet = statement.prefix.lstrip() if starts_item else ""
    if previous is None:
        return bullet
    if previous.block == statement.block:
        return " "
    both_items = previous.kind is Block.ITEM and statement.kind is Block.ITEM and as_list
    return ("\n" if both_items else "\n\n") + bullet
