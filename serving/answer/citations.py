"""From a model's reply to claims: clean text, claims with byte spans and 0-based chunks, fabricated markers.

The reply is parsed as a stream is (:mod:`serving.answer.streaming`), so that what is checked while a model writes is
what is shown in the end. :mod:`serving.answer.rebuilding` is the way back.
"""

from __future__ import annotations

from serving.answer.statements import Block, Reply, Statement
from serving.answer.streaming import Parser

__all__ = ["Block", "Reply", "Statement", "parse"]


def parse(reply: str, passages: int) -> Reply:
    """Parses a reply written over ``passages`` numbered passages. Accepts any string and never raises."""
    parser = Parser(passages)
    parser.feed(reply)
    parser.finish()
    return parser.reply()
