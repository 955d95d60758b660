"""Reads pairs of texts as the families of :mod:`models.families` do: document and claim in one text, in chunks."""

from __future__ import annotations

import re
from typing import Any

from tokenizers import AddedToken

from models.documents import LongDocument, Pieces, lay_out
from models.errors import ModelUnusableError
from models.families import PART, Layout
from models.pairs import PairRow, PairTokenizer
from models.text import readable

_WORD = re.compile(r"\S+")


class LaidPairTokenizer(PairTokenizer):
    """Reads pairs as ``layout`` says, in a window of ``max_tokens``.

    The ids are those that the tokenizer makes of the authors' own string, except where a text holds a special token
    (``</s>`` in a document): that is read as text. Only documents are split; the authors' code cuts the claim off where
    the window ends. Neighbouring chunks share a sentence where one fits, which theirs do not; the best chunk counts.

    Raises :class:`~models.errors.ModelUnusableError` when the tokenizer has no such separator.
    """

    def __init__(self, tokenizer: Any, *, layout: Layout, max_tokens: int) -> None:
        super().__init__(tokenizer, order="document_first", max_tokens=max_tokens)
        self._layout = layout
        self._separator: int | None = None
        if layout.separator is not None:
            whole = tokenizer.backend_tokenizer
            self._separator = whole.token_to_id(layout.separator)
            if self._separator is None:
                raise ModelUnusableError(
                    f"Its tokenizer has no {layout.separator!r}, which stands between document and claim: the "
                    "checkpoint is of another family; set models.verifier.family to it."
                )
            # It splits a text just as the separator does, and no text can hold it.
            real = whole.get_added_tokens_decoder().get(self._separator)
            stand_in = AddedToken(
                PART, normalized=False, lstrip=bool(real and real.lstrip), rstrip=bool(real and real.rstrip)
            )
            self._backend.add_tokens([stand_in])
        self._part = self._backend.token_to_id(PART)

    def pieces(self, document: str, settled: str, mode: LongDocument = "chunk_max") -> Pieces:
        return self._read(readable(document), readable(settled), mode)[0]

    def rows(
        self, number: int, document: str, settled: str, mode: LongDocument = "chunk_max", *, head: int = 0
    ) -> tuple[list[PairRow], bool]:
        claim = readable(settled)
        if not self._encode(claim).ids:
            return [], False
        laid, read = self._read(readable(document), claim, mode)
        return [PairRow(number, tokens, head) for tokens in read], laid.truncated

    def _read(self, document: str, claim: str, mode: LongDocument) -> tuple[Pieces, list[dict[str, list[int]]]]:
        """The document's chunks, and the tokens of each with the claim."""
        frame = len(self._tokens("", claim)["input_ids"])
        room = self.max_tokens - frame
        while True:
            self._check_room(room, frame)
            laid = self._lay_out(document, room, mode)
            read = [self._tokens(text, claim) for text in laid.texts]
            over = max((len(tokens["input_ids"]) for tokens in read), default=0) - self.max_tokens
            if over <= 0:
                return laid, read
            room -= over  # where a document meets what is around it, there may be a token more

    def _lay_out(self, document: str, room: int, mode: LongDocument) -> Pieces:
        chunk = self._layout.chunk
        if self._layout.unit == "tokens":
            return lay_out(document, self._offsets, min(room, chunk), mode)
        laid = lay_out(document, _words, chunk, mode, unit="words")
        fitting = [lay_out(text, self._offsets, room, mode) for text in laid.texts]
        truncated = laid.truncated or any(one.truncated for one in fitting)
        return Pieces(tuple(text for one in fitting for text in one.texts), truncated)

    def _tokens(self, document: str, claim: str) -> dict[str, list[int]]:
        encoding = self._backend.encode(self._layout.text(document, claim), add_special_tokens=True)
        ids = encoding.ids
        if self._separator is not None:
            ids = [self._separator if number == self._part else number for number in ids]
        return {"input_ids": ids, **({"token_type_ids": encoding.type_ids} if self._with_types else {})}


def _words(text: str) -> list[tuple[int, int]]:
    """The code-point ranges of the words between blanks."""
    return [match.span() for match in _WORD.finditer(text)]
