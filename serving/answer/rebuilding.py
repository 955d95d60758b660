"""From surviving statements to the answer's text: the only way text leaves.

What is written besides the statements is list syntax, table syntax and separators, all of it made here. Survivors of
one block are joined by a space, list items and table rows by a line break, blocks by an empty line. Nested lists are
flattened, since an item whose parent was dropped would hang from another; ordered ones are numbered anew; a list of
which one item is left becomes a paragraph. A table row stands under its header row or not at all.

A block is written only if it reads back, with its markers, as the statements it was made of. Sentences that do not when
side by side get blocks of their own, and one that does not even then is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from serving.answer.pages import size
from serving.answer.sentences import terminator_start
from serving.answer.statements import Block, Statement
from serving.answer.streaming import Parser
from serving.answer.types import Span

_NUMBER = re.compile(r"\d{1,3}([.)])[ \t]+\Z")
_HIGHEST_NUMBER = 999  # the parser takes longer numbers for years and the like
_JOINED = "。！？"  # sentences that end so stand side by side without a space


@dataclass(frozen=True, slots=True)
class Placed:
    """A survivor, by its place among those given, and where it stands in the text, in UTF-8 bytes."""

    index: int
    span: Span


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The text and the survivors that are in it, in order."""

    text: str
    placed: tuple[Placed, ...]


class _Unit(NamedTuple):
    """What stands on lines of its own: survivors by index, all of one kind and group, and what is between them."""

    members: tuple[int, ...]
    joint: str


def rebuild(survivors: Sequence[Statement], passages: int) -> Rebuilt:
    """Makes the text of the surviving statements, given in reply order, of a reply over ``passages`` passages."""
    units = [unit for block in _blocks(survivors) for unit in _units(block, survivors, passages)]
    pieces: list[str] = []
    placed: list[Placed] = []
    at = 0

    def write(text: str) -> None:
        nonlocal at
        pieces.append(text)
        at += size(text)

    for lead, unit, tail in _layout(units, survivors):
        write(lead)
        for number, index in enumerate(unit.members):
            write(unit.joint if number else "")
            start = at
            write(survivors[index].claim.text)
            placed.append(Placed(index, Span(start, at)))
        write(tail)
    return Rebuilt("".join(pieces), tuple(placed))


def _blocks(survivors: Sequence[Statement]) -> Iterator[list[int]]:
    for _, members in groupby(range(len(survivors)), key=lambda index: survivors[index].block):
        yield list(members)


def _units(block: list[int], survivors: Sequence[Statement], passages: int) -> list[_Unit]:
    statements = [survivors[index] for index in block]
    # ``終わりだ。次。``, where the markers come before the terminators.
    tight = all(
        one.claim.text[-1] in _JOINED and terminator_start(one.claim.text) < len(one.claim.text) for one in statements
    )
    joint = "" if tight else " "
    if _reads_back(statements, joint, passages):
        return [_Unit(tuple(block), joint)]
    alone = block if len(block) > 1 else []
    return [_Unit((index,), joint) for index in alone if _reads_back([survivors[index]], joint, passages)]


def _reads_back(statements: Sequence[Statement], joint: str, passages: int) -> bool:
    """Whether the statements of one block are parsed as just these, with a marker each and, for a reader, without."""
    first = statements[0]
    if first.kind is Block.TABLE and not first.context:
        return False
    texts = [one.claim.text for one in statements]
    if first.kind in _UNMARKED:
        return _reads_as(statements, texts, joint, (), passages)
    marked = [_marked(text) for text in texts]
    return _reads_as(statements, marked, joint, (0,), max(1, passages)) and (
        len(statements) == 1 or _reads_as(statements, texts, joint, (), passages)
    )


def _reads_as(
    statements: Sequence[Statement], texts: Sequence[str], joint: str, chunks: tuple[int, ...], passages: int
) -> bool:
    lead, tail = _frame(statements[0])
    parser = Parser(passages)
    parser.feed(lead + joint.join(texts) + tail)
    parser.finish()
    found = [(s.kind, s.claim.text, s.claim.chunks, s.context) for s in parser.reply().statements]
    kind = Block.PARAGRAPH if statements[0].kind is Block.ITEM else statements[0].kind
    return found == [(kind, one.claim.text, chunks, one.context) for one in statements]


_UNMARKED = (Block.HEADING, Block.CODE)


def _marked(text: str) -> str:
    at = terminator_start(text)
    return f"{text[:at]} [1]{text[at:]}"


def _frame(statement: Statement) -> tuple[str, str]:
    """What stands before and after a block that is in no list."""
    if statement.kind is Block.HEADING:
        return statement.prefix.strip() + " ", ""
    if statement.kind is Block.CODE:
        return statement.prefix + "\n", "\n" + statement.prefix
    if statement.kind is Block.TABLE:
        columns = statement.context.count("|") + 1
        return f"| {statement.context} |\n|{'---|' * columns}\n| ", " |"
    return "", ""


def _layout(units: Sequence[_Unit], survivors: Sequence[Statement]) -> Iterator[tuple[str, _Unit, str]]:
    """Yields each unit with what stands before and after it, the separator from the one above included."""
    separator = ""
    for (kind, group), run in groupby(units, key=lambda unit: _run_of(survivors[unit.members[0]])):
        together = list(run)
        number = 0
        for at, unit in enumerate(together):
            statement = survivors[unit.members[0]]
            lead, tail = _frame(statement)
            if kind is Block.ITEM and len(together) > 1:
                number += _NUMBER.search(statement.prefix) is not None
                lead = _bullet(statement.prefix, number)
            elif kind is Block.TABLE and at:
                lead = "| "
            close = at and group >= 0
            yield ("\n" if close else separator) + lead, unit, tail
            separator = "\n\n"


def _run_of(statement: Statement) -> tuple[Block, int]:
    return statement.kind, statement.group


def _bullet(prefix: str, number: int) -> str:
    ordered = _NUMBER.search(prefix)
    return f"{min(number, _HIGHEST_NUMBER)}{ordered[1]} " if ordered else f"{prefix.rsplit(maxsplit=1)[-1]} "
