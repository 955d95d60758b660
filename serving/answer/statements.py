"""What a reply is parsed to: statements, each a claim with the block it stands in.

No text that a claim covers holds a line break or begins with Markdown block syntax, so it can stand anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from serving.answer.types import Claim


class Block(StrEnum):
    PARAGRAPH = "paragraph"
    ITEM = "item"
    HEADING = "heading"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim and the block it stands in.

    ``block`` numbers the blocks of a reply from 0; ``prefix`` is its syntax (``"- "``, ``"## "``, a code fence);
    ``group`` numbers the list or table it belongs to (-1: none); ``context`` is what must be read before the claim for
    it to mean what it says: of a table row, the header row's cells (``"City | Population"``), empty when it has none.
    """

    claim: Claim
    kind: Block
    block: int
    prefix: str = ""
    group: int = -1
    context: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A parsed reply. ``text`` is the reply without markers and quote marks; every span points into it.

    ``fabricated`` are the numbers, as written, that name no passage; ``years`` are bracketed years, removed and
    reported but held against no one.
    """

    text: str
    statements: tuple[Statement, ...]
    fabricated: tuple[str, ...] = ()
    years: tuple[str, ...] = ()
