"""The embedding half of a generation, in FAISS: inner product of vectors of length one, which is their cosine."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import faiss
import numpy as np
from numpy.typing import NDArray

from serving.retrieval.accelerator import SCRATCH_BYTES, Device, to_device

Vectors = NDArray[np.float32]

FLAT_LIMIT = 100_000
"""Passages up to which every vector is compared (exact, some 10 ms at 384 dimensions); above it, an HNSW graph."""

_HNSW_NEIGHBOURS = 32
_HNSW_EF_CONSTRUCTION = 200
_HNSW_EF_SEARCH = 128
_BLOCK_ROWS = 8192


def normalise(vectors: NDArray[np.floating]) -> Vectors:
    """``(n, dim)`` vectors scaled to length one, as contiguous float32. A zero vector stays zero.

    Raises ``ValueError`` when the array has another shape or holds a value that is not finite.
    """
    array = np.ascontiguousarray(vectors, dtype=np.float32)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"embeddings must have the shape (n, dim), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("embeddings must be finite")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    # Divided by the smallest normal number at least: a zero vector has no direction to scale.
    return np.asarray(array / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)


class DenseWriter:
    """Collects vectors on disk, row by row, and makes the FAISS index of them at the end.

    The kind of index depends on how many there are, which is known only then; until then memory holds one batch.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw_path = path.with_suffix(".rows")
        self._raw = self._raw_path.open("wb")
        self.rows = 0
        self.dimension = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()

    def add(self, vectors: NDArray[np.floating]) -> None:
        """Append ``(n, dim)`` vectors. Raises ``ValueError`` when ``dim`` is not that of the rows before."""
        rows = normalise(vectors)
        if self.dimension not in {0, rows.shape[1]}:
            raise ValueError(f"embeddings have {rows.shape[1]} dimensions after {self.dimension}")
        self.dimension = rows.shape[1]
        self.rows += len(rows)
        self._raw.write(rows.tobytes())

    def finish(self) -> None:
        """Write the index. There must be at least one row."""
        self._raw.close()
        rows = np.memmap(self._raw_path, dtype=np.float32, mode="r", shape=(self.rows, self.dimension))
        index = _empty_index(self.rows, self.dimension)
        for start in range(0, self.rows, _BLOCK_ROWS):
            index.add(np.ascontiguousarray(rows[start : start + _BLOCK_ROWS]))
        faiss.write_index(index, str(self._path))
        self._raw_path.unlink()


class DenseReader:
    """Searches an embedding half. Safe to use from several threads.

    Opening raises ``RuntimeError`` if unreadable, ``DeviceMissingError`` when it cannot be put on ``device``.
    """

    def __init__(self, path: Path, *, device: Device = "cpu", scratch_bytes: int = SCRATCH_BYTES) -> None:
        self._index = to_device(faiss.read_index(str(path)), device, scratch_bytes=scratch_bytes)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dimension(self) -> int:
        return int(self._index.d)

    def search(self, vector: NDArray[np.floating], limit: int) -> list[int]:
        """Ordinals of at most ``limit`` nearest rows to a vector of shape ``(dim,)``, nearest first.

        Raises ``ValueError`` when the vector has another shape or holds a value that is not finite.
        """
        if vector.shape != (self.dimension,):
            raise ValueError(f"the query vector must have the shape ({self.dimension},), got {vector.shape}")
        _, ordinals = self._index.search(normalise(vector[np.newaxis]), min(limit, len(self)))
        # A graph that finds fewer than asked fills up with -1.
        return [int(ordinal) for ordinal in ordinals[0] if ordinal >= 0]


def _empty_index(rows: int, dimension: int) -> faiss.Index:
    if rows <= FLAT_LIMIT:
        return faiss.IndexFlatIP(dimension)
    index = faiss.IndexHNSWFlat(dimension, _HNSW_NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _HNSW_EF_CONSTRUCTION
    index.hnsw.efSearch = _HNSW_EF_SEARCH
    return index
