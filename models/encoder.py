"""Pair classification with any ``AutoModelForSequenceClassification``: what reranker and verifier are made of.

A pair is a document and a settled text (a query or a claim). The settled text is never cut. A document that does not
fit the window beside it is split into pieces, and the pair's score is that of its best piece.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BatchEncoding

from models.batching import batches
from models.device import Check, DeviceThread, choose, unchecked
from models.errors import InputTooLongError, ModelUnusableError
from models.fingerprint import fingerprint
from models.splitting import split
from models.text import readable
from serving.answer.types import Deadline

Order = Literal["document_first", "settled_first"]

_DOCUMENT_SHARE = 8  # at least an eighth of the window is the document's
_BATCH_TOKENS = 8192
_ENDLESS = 10**6  # tokenizers without a limit of their own report an enormous one


@dataclass(frozen=True, slots=True)
class _Row:
    """One forward row: the tokens of a piece of pair number ``pair``."""

    pair: int
    tokens: dict[str, list[int]]

    @property
    def length(self) -> int:
        return len(self.tokens["input_ids"])


class PairEncoder:
    """Scores pairs in [0, 1]: sigmoid for one label, else the softmax share of the positive one.

    The positive label is the one named ``entail...`` in the model's ``id2label``, else the last. ``order`` is how the
    model was trained: rerankers read the query first, grounding checkers the document. ``max_tokens`` narrows the
    model's window; ``batch_tokens`` bounds rows times the longest row of a batch; ``threads`` is the width of an
    operation on a CPU; ``memory_share`` bounds what this process takes of a GPU's memory.
    """

    def __init__(
        self,
        folder: Path,
        *,
        order: Order,
        threads: int,
        max_tokens: int | None = None,
        batch_tokens: int | None = None,
        device: str | None = None,
        memory_share: float | None = None,
    ) -> None:
        self.name = f"{folder.name}@{fingerprint(folder)}"
        self._order = order
        self._batch_tokens = batch_tokens or _BATCH_TOKENS
        self._device = choose(device, memory_share)
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelUnusableError(f"{folder} does not load as a pair classifier: {error}") from error
        if not self._tokenizer.is_fast:
            raise ModelUnusableError(
                f"{folder} has no fast tokenizer, which splitting needs: save tokenizer.json there."
            )
        self.max_tokens = min(limit for limit in (self._load(folder), max_tokens) if limit)
        self._specials = self._tokenizer.num_special_tokens_to_add(pair=True)
        self._thread = DeviceThread(folder.name, threads=threads)

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: Deadline | None = None) -> list[float]:
        """One score for each (document, settled text), in order.

        Raises :class:`~models.errors.InputTooLongError` when a settled text leaves no room for a document,
        :class:`~serving.answer.errors.DeadlineExceededError`, :class:`~serving.answer.errors.UnavailableError`.
        """
        if not pairs:
            return []
        return await self._thread.run(lambda check: self.compute(pairs, check=check), deadline=deadline)

    def compute(self, pairs: Sequence[tuple[str, str]], *, check: Check = unchecked) -> list[float]:
        """:meth:`score` on the calling thread. ``check`` runs before every pair and every batch."""
        rows: list[_Row] = []
        for number, (document, settled) in enumerate(pairs):
            check()
            rows += self._rows(number, document, settled)
        scores = [-math.inf] * len(pairs)
        for batch in batches([row.length for row in rows], self._batch_tokens):
            check()
            for index, score in zip(batch, self._forward([rows[i].tokens for i in batch]), strict=True):
                number = rows[index].pair
                scores[number] = max(scores[number], score)
        return self._settled(pairs, scores)

    def pieces(self, document: str, settled: str) -> list[str]:
        """The pieces of ``document`` that are read beside ``settled``: itself when it fits."""
        room = self.max_tokens - self._specials - len(self._plain(settled)["input_ids"])
        if room < self.max_tokens // _DOCUMENT_SHARE:
            raise InputTooLongError(
                f"A query or claim of {self.max_tokens - self._specials - room} tokens leaves no room for a document "
                f"in a window of {self.max_tokens}: make it shorter."
            )
        return split(document, self._plain(document)["offset_mapping"], room)

    def beside(self, head: str) -> PairEncoder | None:
        """An encoder for another head of the same weights, on the same thread; None where there are no heads."""
        del head
        return None

    async def warm_up(self) -> None:
        """Runs one row of the full window, so that the first real pair finds everything allocated."""
        await self.score([("word " * self.max_tokens, "word")])

    def close(self) -> None:
        self._thread.close()

    def _load(self, folder: Path) -> int:
        """Loads the model, and returns its window in tokens."""
        try:
            model: Any = AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
            )
        except (OSError, ValueError) as error:
            raise ModelUnusableError(f"{folder} does not load as a pair classifier: {error}") from error
        self._model = model.eval().to(self._device)
        self._positive = _positive_label(self._model.config)
        return _window(self._model.config, self._tokenizer)

    def _settled(self, pairs: Sequence[tuple[str, str]], scores: list[float]) -> list[float]:
        """The scores of pairs from those of their best pieces."""
        del pairs
        return scores

    def _rows(self, number: int, document: str, settled: str) -> list[_Row]:
        document, settled = readable(document), readable(settled)
        return [_Row(number, self._encode(piece, settled)) for piece in self.pieces(document, settled)]

    def _plain(self, text: str) -> BatchEncoding:
        encoded: BatchEncoding = self._tokenizer(
            text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
        )
        return encoded

    def _encode(self, document: str, settled: str) -> dict[str, list[int]]:
        # Cutting a text can make it a token or two longer, and then it is the document that loses them.
        first, second, cut = (
            (document, settled, "only_first") if self._order == "document_first" else (settled, document, "only_second")
        )
        # A separator inside a text is text: a passage cannot speak for the claim.
        return dict(
            self._tokenizer(first, second, truncation=cut, max_length=self.max_tokens, split_special_tokens=True)
        )

    @torch.inference_mode()
    def _forward(self, rows: list[dict[str, list[int]]]) -> list[float]:
        inputs = self._tokenizer.pad(rows, padding=True, return_tensors="pt").to(self._device)
        logits = self._model(**inputs).logits.float()
        chances = torch.sigmoid(logits[:, 0]) if logits.shape[1] == 1 else logits.softmax(-1)[:, self._positive]
        scores: list[float] = chances.tolist()
        return scores


def _positive_label(config: Any) -> int:
    for label, name in (config.id2label or {}).items():
        if str(name).lower().startswith("entail"):
            return int(label)
    return int(config.num_labels) - 1


def _window(config: Any, tokenizer: Any) -> int:
    """How many tokens a row may have. RoBERTa's position table begins with rows that no token uses."""
    positions = getattr(config, "max_position_embeddings", 0) or _ENDLESS
    if "roberta" in config.model_type:
        positions -= config.pad_token_id + 1
    return int(min(positions, tokenizer.model_max_length))
