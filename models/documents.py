"""What becomes of a document that does not fit a model's window beside its claim or query. Nothing is lost silently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from models.errors import InputTooLongError
from models.splitting import split

LongDocument = Literal["chunk_max", "truncate", "error"]
"""``chunk_max``: it is read in pieces, and scores as its best one; ``truncate``: its first piece alone is read, and
said to be; ``error``: it is refused."""

Offsets = Callable[[str], Sequence[tuple[int, int]]]
"""The code-point ranges of the tokens of a text."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of a document that are read, in order; none of a document without a token.

    ``truncated`` says that some of it is read in no piece.
    """

    texts: tuple[str, ...]
    truncated: bool = False


def lay_out(document: str, offsets_of: Offsets, room: int, mode: LongDocument, *, unit: str = "tokens") -> Pieces:
    """``document`` in pieces of at most ``room`` tokens, or what ``unit`` calls them.

    They are cut at the ends of sentences where there are any.

    Raises :class:`~models.errors.InputTooLongError` in the mode ``error``, when more than one is needed.
    """
    offsets = offsets_of(document)
    if not offsets:
        return Pieces(())
    if len(offsets) <= room:
        return Pieces((document,))
    if mode == "error":
        raise InputTooLongError(
            f"A document of {len(offsets)} {unit} is longer than the {room} that fit beside its query or claim: "
            "send it in parts, or set long_document to chunk_max or truncate."
        )
    pieces = _fitting(document, offsets, offsets_of, room)
    if mode == "truncate":
        return Pieces(pieces.texts[:1], truncated=True)
    return pieces


def _fitting(text: str, offsets: Sequence[tuple[int, int]], offsets_of: Offsets, room: int) -> Pieces:
    """Pieces that fit once they stand alone: a cut can make a text a token or two longer than it was in its place."""
    texts: list[str] = []
    truncated = False
    for piece in split(text, offsets, room):
        own = offsets_of(piece)
        if len(own) <= room:
            texts += [piece] if own else []
        elif len(piece) < len(text):
            inner = _fitting(piece, own, offsets_of, room)
            texts += inner.texts
            truncated = truncated or inner.truncated
        else:  # one character that is more tokens than there is room for
            truncated = True
    return Pieces(tuple(texts), truncated)
