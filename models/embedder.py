"""Sentence embeddings, for the dense half of the index and for the embedding reranker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from models.batching import batches
from models.cpu import Dtype, cpu_flags, resolve_dtype
from models.device import Check, DeviceThread, choose, unchecked
from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.splitting import split
from models.text import readable
from serving.answer.types import Deadline

Vectors = NDArray[np.float32]


class Embedder:
    """Turns texts into unit vectors with any sentence-transformers model.

    A text longer than the window (``max_tokens``, at most the model's own) is not cut: it is split, and its vector is
    the mean of its pieces' by length, made a unit vector again. ``batch_tokens`` bounds rows times the longest row;
    a CPU is fastest with batches that stay in its caches, a GPU with large ones. ``memory_share`` bounds what this
    process takes of a GPU's memory.
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
        self._thread = DeviceThread(folder.name, threads=threads)

    async def embed(self, texts: Sequence[str], *, deadline: Deadline | None = None, query: bool = False) -> Vectors:
        """:meth:`encode` on the device thread.

        Raises :class:`~serving.answer.errors.DeadlineExceededError`, :class:`~serving.answer.errors.UnavailableError`.
        """
        if not texts:
            return self._none()
        return await self._thread.run(lambda check: self.encode(texts, query=query, check=check), deadline=deadline)

    def encode(self, texts: Sequence[str], *, query: bool = False, check: Check = unchecked) -> Vectors:
        """An array of shape (len(texts), dimension), float32, each row of length 1, in the order of ``texts``.

        ``query`` asks for the prompt that models with one for each side put before a question.
        """
        if not texts:
            return self._none()
        prompt = self._model.prompts.get("query" if query else "document") or ""
        room = max(1, self.max_tokens - self._tokenizer.num_special_tokens_to_add() - self._tokens(prompt))
        rows: list[tuple[int, str, int]] = []  # (text, piece, its tokens)
        for number, text in enumerate(map(readable, texts)):
            for piece, length in self._pieces(text, room):
                rows.append((number, piece, length))
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for batch in batches([length for _, _, length in rows], self._batch_tokens):
            check()
            vectors = self._forward([rows[index][1] for index in batch], prompt)
            for index, vector in zip(batch, vectors, strict=True):
                number, _, length = rows[index]
                sums[number] += vector * length
        sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return sums

    async def warm_up(self) -> None:
        """Embeds one text as long as the window."""
        await self.embed(["word " * self.max_tokens])

    def close(self) -> None:
        self._thread.close()

    def _pieces(self, text: str, room: int) -> list[tuple[str, int]]:
        offsets = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)[
            "offset_mapping"
        ]
        if len(offsets) <= room:
            return [(text, max(1, len(offsets)))]
        return [(piece, self._tokens(piece)) for piece in split(text, offsets, room)]

    def _tokens(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _forward(self, texts: list[str], prompt: str) -> Vectors:
        vectors: Vectors = self._model.encode(
            texts,
            prompt=prompt,
            batch_size=len(texts),
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        ).astype(np.float32)
        return vectors

    def _none(self) -> Vectors:
        return np.zeros((0, self.dimension), dtype=np.float32)
