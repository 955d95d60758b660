"""Reads pairs of texts into rows of tokens: the claim or query whole, the document in as many pieces as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tokenizers import Encoding

from models.documents import LongDocument, Pieces, lay_out
from models.errors import InputTooLongError
from models.plain_text import plain_reader
from models.text import readable

Order = Literal["document_first", "settled_first"]

Beside = Callable[[list[int], list[int | None]], dict[str, list[int]]]
"""More inputs of a row, from its tokens and the side of each: 0 the first text's, 1 the second's, None its frame's."""

_DOCUMENT_SHARE = 8  # at least an eighth of the window is the document's


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row of a forward pass: the tokens of a piece of pair number ``pair``, for head number ``head`` of a model
    that has several.
    """

    pair: int
    tokens: dict[str, list[int]]
    head: int = 0

    @property
    def length(self) -> int:
        return len(self.tokens["input_ids"])


class PairTokenizer:
    """Reads pairs for a model whose window is ``max_tokens``.

    It has a copy of the tokenizer to itself and never changes it, so that it may read on any number of threads. Tokens
    that separate or mask are read as text where they stand in a text: a passage cannot speak for the claim. ``beside``
    gives inputs that a model reads beside the tokens of a row, each as long as the row.
    """

    def __init__(self, tokenizer: Any, *, order: Order, max_tokens: int, beside: Beside | None = None) -> None:
        self.max_tokens = max_tokens
        self._beside = beside
        self._order = order
        self._backend = plain_reader(tokenizer)
        self._specials = self._backend.num_special_tokens_to_add(True)
        self._with_types = "token_type_ids" in tokenizer.model_input_names

    def pieces(self, document: str, settled: str, mode: LongDocument = "chunk_max") -> Pieces:
        """The pieces of ``document`` that are read beside ``settled``: itself when it fits."""
        return lay_out(readable(document), self._offsets, self._room(self._encode(readable(settled))), mode)

    def rows(
        self, number: int, document: str, settled: str, mode: LongDocument = "chunk_max", *, head: int = 0
    ) -> tuple[list[PairRow], bool]:
        """The rows of pair ``number``, one a piece, and whether some of the document is in none of them.

        There is no row when either text has no token: nothing is said, so nothing bears on it. Raises
        :class:`~models.errors.InputTooLongError` when ``settled`` leaves no room for a document.
        """
        beside = self._encode(readable(settled))
        if not beside.ids:
            return [], False
        laid = lay_out(readable(document), self._offsets, self._room(beside), mode)
        rows = [PairRow(number, self._join(self._encode(text), beside), head) for text in laid.texts]
        return rows, laid.truncated

    def _room(self, settled: Encoding) -> int:
        room = self.max_tokens - self._specials - len(settled.ids)
        self._check_room(room, len(settled.ids))
        return room

    def _check_room(self, room: int, settled: int) -> None:
        if room < self.max_tokens // _DOCUMENT_SHARE:
            raise InputTooLongError(
                f"A query or claim of {settled} tokens leaves no room for a document in a window of "
                f"{self.max_tokens}: make it shorter."
            )

    def _encode(self, text: str) -> Encoding:
        return self._backend.encode(text, add_special_tokens=False)

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        return self._encode(text).offsets

    def _join(self, document: Encoding, settled: Encoding) -> dict[str, list[int]]:
        first, second = (document, settled) if self._order == "document_first" else (settled, document)
        joined = self._backend.post_process(first, second, add_special_tokens=True)
        tokens = {"input_ids": joined.ids}
        if self._with_types:
            tokens["token_type_ids"] = joined.type_ids
        if self._beside is not None:
            # The library forgets the first text's side where the two were read apart.
            sides: Iterator[int | None] = iter([0] * len(first.ids) + [1] * len(second.ids))
            framed = [None if special else next(sides) for special in joined.special_tokens_mask]
            tokens |= self._beside(joined.ids, framed)
        return tokens
