"""The hybrid index as it is searched: one generation, opened whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serving.answer.errors import IndexMissingError
from serving.answer.types import Passage
from serving.retrieval.accelerator import SCRATCH_BYTES, Device
from serving.retrieval.dense import DenseReader
from serving.retrieval.fusion import reciprocal_rank_fusion
from serving.retrieval.generations import BUILD_COMMAND, LEXICAL, MANIFEST, VECTORS, current_folder
from serving.retrieval.lexical import LexicalReader
from serving.retrieval.manifest import Manifest


class HybridIndex:
    """BM25 and embeddings over the same passages. Synchronous, read-only, safe to use from several threads."""

    def __init__(self, manifest: Manifest, lexical: LexicalReader, dense: DenseReader) -> None:
        self.manifest = manifest
        self._lexical = lexical
        self._dense = dense

    @classmethod
    def open(
        cls,
        root: Path,
        embedder_name: str | None = None,
        *,
        device: Device = "cpu",
        scratch_bytes: int = SCRATCH_BYTES,
    ) -> HybridIndex:
        """Open the generation that answers under ``root``. It stays readable when a newer one takes its place.

        ``device`` is where vectors are compared; ``scratch_bytes`` is a GPU's working memory for it.

        Raises :class:`~serving.answer.errors.IndexMissingError`, naming the command to run, when there is no index,
        when it is damaged or of another format, or when it was built with another embedder than ``embedder_name``;
        and :class:`~serving.answer.errors.DeviceMissingError` when ``device`` cannot be used.
        """
        index = cls.load(current_folder(root), device=device, scratch_bytes=scratch_bytes)
        if embedder_name not in {None, index.manifest.embedder}:
            raise IndexMissingError(
                f"the index was built with the embedder {index.manifest.embedder!r}, not {embedder_name!r}: "
                f"{BUILD_COMMAND}"
            )
        return index

    @classmethod
    def load(cls, folder: Path, *, device: Device = "cpu", scratch_bytes: int = SCRATCH_BYTES) -> HybridIndex:
        """Open the generation in ``folder``, whether it is the one that answers or not. Raises as :meth:`open`."""
        try:
            manifest = Manifest.from_json((folder / MANIFEST).read_text(encoding="utf-8"))
        except OSError as error:
            raise IndexMissingError(f"the index is incomplete: {BUILD_COMMAND}") from error
        except ValueError as error:
            raise IndexMissingError(f"the index cannot be read ({error}): {BUILD_COMMAND}") from error
        try:
            lexical = LexicalReader(folder / LEXICAL)
            dense = DenseReader(folder / VECTORS, device=device, scratch_bytes=scratch_bytes)
        # ValueError is tantivy's, RuntimeError FAISS's, and a size read from garbage fits no memory. What they say
        # names paths of this machine, which are no matter of the caller's.
        except (OSError, ValueError, RuntimeError, MemoryError) as error:
            raise IndexMissingError(f"the index is damaged: {BUILD_COMMAND}") from error
        sizes = {manifest.passages, len(lexical), len(dense)}
        if len(sizes) > 1 or dense.dimension != manifest.dimension:
            raise IndexMissingError(f"the parts of the index do not belong together: {BUILD_COMMAND}")
        return cls(manifest, lexical, dense)

    @property
    def generation(self) -> str:
        return self.manifest.generation

    def __len__(self) -> int:
        return self.manifest.passages

    def lexical(self, query: str, limit: int) -> list[Passage]:
        """At most ``limit`` passages by BM25 alone, best first; scores are BM25, from 0 up. ``query`` is any text."""
        hits = self._lexical.search(query, limit)
        found = self._lexical.passages(hit.ordinal for hit in hits)
        return [found[hit.ordinal].scored(hit.score) for hit in hits]

    def frequencies(self, words: Sequence[str]) -> list[int]:
        """How many passages hold each of ``words``."""
        return self._lexical.frequencies(words)

    def hybrid(self, query: str, query_vector: NDArray[np.floating], limit: int, pool: int) -> list[Passage]:
        """At most ``limit`` passages from the best ``pool`` of each half, fused by rank, best first.

        ``query_vector`` has the shape ``(dimension,)`` and any length; a score is the sum of reciprocal ranks, at most
        2 / 61. Raises ``ValueError`` for a vector of another shape or one that is not finite.
        """
        if limit < 1:
            return []
        pool = max(pool, limit)
        lexical = [hit.ordinal for hit in self._lexical.search(query, pool)]
        fused = reciprocal_rank_fusion([lexical, self._dense.search(query_vector, pool)])[:limit]
        found = self._lexical.passages(ordinal for ordinal, _ in fused)
        return [found[ordinal].scored(score) for ordinal, score in fused]
