"""Sentence embeddings, for the dense half of the index and for the embedding reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from models.batcher.work import Totals
from models.batching import batches
from models.cpu import Dtype, cpu_flags, resolve_dtype
from models.device import choose
from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.runtime import Check, EncoderRuntime
from models.splitting import split
from models.text import readable
from serving.answer.types import Deadline, Phases

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of a pass: a piece of text number ``text``, which counts for ``weight`` in its vector.

    ``length`` is in tokens, with the prompt and what frames the piece.
    """

    text: int
    piece: str
    prompt: str
    weight: int
    length: int


class Embedder:
    """Turns texts into unit vectors with any sentence-transformers model.

    A text longer than the window (``max_tokens``, at most the model's own) is not cut: it is split, and its vector is
    the mean of its pieces' by length, made a unit vector again. ``batch_tokens`` bounds rows times the longest row;
    a CPU is fastest with batches that stay in its caches, a GPU with large ones. ``memory_share`` bounds what this
    process takes of a GPU's memory. After ``patience_s`` seconds of work and no finished pass, :meth:`health` fails.
    """

    def __init__(
        self,
        folder: Path,
        *,
        threads: int,
        dtype: Dtype = "auto",
        max_tokens: int | None = None,
        batch_tokens: int | None = None,
        device: str | None = None,
        memory_share: float | None = None,
        patience_s: float = 60.0,
    ) -> None:
        self.name = f"{folder.name}@{fingerprint(folder)}"
        where = choose(device, memory_share)
        on_cpu = where.type == "cpu"
        self._batch_tokens = batch_tokens or (1024 if on_cpu else 16384)
        chosen = resolve_dtype(dtype, flags=cpu_flags() if on_cpu else None)
        try:
            self._model: Any = SentenceTransformer(
                str(folder),
                device=str(where),
                local_files_only=True,
                model_kwargs={"use_safetensors": True, "dtype": chosen if chosen != "auto" else "float32"},
            )
        except (OSError, ValueError) as error:
            raise ModelUnusableError(f"{folder} does not load as a sentence-transformers model: {error}") from error
        self._tokenizer: Any = self._model.tokenizer
        self.dimension: int = int(self._model.get_embedding_dimension())
        self.max_tokens: int = min(limit for limit in (self._model.max_seq_length, max_tokens) if limit)
        self._model.max_seq_length = self.max_tokens
        self._runtime = EncoderRuntime[TextRow, Vectors](
            folder.name, self._forward, threads=threads, budget=self._batch_tokens, patience_s=patience_s
        )

    async def embed(self, texts: Sequence[str], *, deadline: Deadline | None = None, query: bool = False) -> Vectors:
        """:meth:`encode`, in passes that concurrent calls share.

        Raises :class:`~serving.answer.errors.DeadlineExceededError`, :class:`~serving.answer.errors.UnavailableError`.
        """
        return (await self.measured(texts, deadline=deadline, query=query))[0]

    async def measured(
        self, texts: Sequence[str], *, deadline: Deadline | None = None, query: bool = False
    ) -> tuple[Vectors, Phases]:
        """:meth:`embed`, and where the time went."""

        def read(check: Check) -> tuple[list[TextRow], list[TextRow]]:
            rows = self._rows(texts, query=query, check=check)
            return rows, rows

        done, rows = await self._runtime.run(read, deadline=deadline)
        return self._joined(len(texts), rows, done.results), done.phases

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """An array of shape (len(texts), dimension), float32, each row of length 1, in the order of ``texts``.

        ``query`` asks for the prompt that models with one for each side put before a question. It runs on the calling
        thread, in passes of its own.
        """
        rows = self._rows(texts, query=query, check=lambda: None)
        vectors: list[Vectors] = [self._none()] * len(rows)
        for batch in batches([row.length for row in rows], self._batch_tokens):
            for index, vector in zip(batch, self._forward([rows[i] for i in batch]), strict=True):
                vectors[index] = vector
        return self._joined(len(texts), rows, vectors)

    async def warm_up(self) -> None:
        """Embeds texts as long as the window, as many as a pass takes."""
        await self.embed(["word " * self.max_tokens] * max(1, self._batch_tokens // self.max_tokens))

    @property
    def totals(self) -> Totals:
        """What all passes held, with and without padding."""
        return self._runtime.totals

    def health(self) -> None:
        """Raises :class:`~serving.answer.errors.UnavailableError` when there is work and nothing comes of it."""
        self._runtime.health()

    def close(self) -> None:
        self._runtime.close()

    def _rows(self, texts: Sequence[str], *, query: bool, check: Check) -> list[TextRow]:
        prompt = self._model.prompts.get("query" if query else "document") or ""
        around = self._tokenizer.num_special_tokens_to_add() + self._tokens(prompt)
        room = max(1, self.max_tokens - around)
        rows: list[TextRow] = []
        for number, text in enumerate(map(readable, texts)):
            check()
            for piece, weight in self._pieces(text, room):
                rows.append(TextRow(number, piece, prompt, weight, min(self.max_tokens, weight + around)))
        return rows

    def _joined(self, count: int, rows: Sequence[TextRow], vectors: Sequence[Vectors]) -> Vectors:
        """One unit vector a text: the mean of its pieces' by length."""
        sums = np.zeros((count, self.dimension), dtype=np.float32)
        for row, vector in zip(rows, vectors, strict=True):
            sums[row.text] += vector * row.weight
        sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return sums

    def _pieces(self, text: str, room: int) -> list[tuple[str, int]]:
        offsets = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)[
            "offset_mapping"
        ]
        if len(offsets) <= room:
            return [(text, max(1, len(offsets)))]
        return [(piece, self._tokens(piece)) for piece in split(text, offsets, room)]

    def _tokens(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _forward(self, rows: list[TextRow]) -> list[Vectors]:
        vectors: list[Vectors] = [self._none()] * len(rows)
        for prompt in {row.prompt for row in rows}:  # the library takes one at a time
            chosen = [index for index, row in enumerate(rows) if row.prompt == prompt]
            encoded: Vectors = self._model.encode(
                [rows[index].piece for index in chosen],
                prompt=prompt,
                batch_size=len(chosen),
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            ).astype(np.float32)
            for index, vector in zip(chosen, encoded, strict=True):
                vectors[index] = vector
        return vectors

    def _none(self) -> Vectors:
        return np.zeros(self.dimension, dtype=np.float32)
