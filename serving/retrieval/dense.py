"""The embedding half of a generation, in FAISS: inner product of vectors of length one, which is their cosine.

Vectors lie in segments, files that never change, as 16-bit floats: half the size of 32-bit ones, and nearest neighbours
stay what they are (0.9994 of the best ten on MiniLM). They are mapped, not loaded: memory holds what searches touch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from serving.retrieval.accelerator import SCRATCH_BYTES, Device, to_device
from serving.retrieval.manifest import Segment

_faiss: Any = faiss  # its stubs describe the constructors of C++

Vectors = NDArray[np.float32]
Ordinals = NDArray[np.int64]

SEAL_ROWS = 262_144
"""Up to so many vectors, all are compared (exact, some 10 ms at 384 dimensions); so many go into inverted lists."""

_ROWS_A_LIST = 256
_TRAINING_ROWS_A_LIST = 64
_SHARE_PROBED = 1 / 12
_LEAST_PROBED = 16
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


def write_segment(folder: Path, name: str, ordinals: Ordinals, vectors: Vectors) -> Segment:
    """Writes ``(n, dim)`` vectors, row i that of ``ordinals[i]``, as a segment that is searched whole."""
    index = _flat(vectors.shape[1])
    index.add(vectors)
    return _write(folder, name, index, ordinals)


def bury(folder: Path, name: str, segment: Segment, gone: NDArray[np.bool_]) -> Segment:
    """The segment without the rows whose ordinals are ``gone``; its tombs are written under ``name``."""
    ordinals = read_ordinals(folder, segment)
    dead = ~read_alive(folder, segment) | gone[ordinals]
    count = int(dead.sum())
    if count == segment.dead:
        return segment
    np.packbits(~dead, bitorder="little").tofile(folder / f"{name}.tombs")
    return Segment(segment.name, segment.rows, count, segment.sealed, f"{name}.tombs")


def merge(folder: Path, name: str, segments: list[Segment], dimension: int, seal_rows: int = SEAL_ROWS) -> Segment:
    """One segment of the live rows of ``segments``, sealed when they are nearly ``seal_rows`` or more.

    Memory holds the new segment, which is bounded because sealed ones are merged with none, and a sample to train on.
    """
    rows = sum(segment.live for segment in segments)
    index = _flat(dimension)
    if rows >= seal_rows // 2:
        lists = max(1, rows // _ROWS_A_LIST)
        index = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(dimension),
            dimension,
            lists,
            faiss.ScalarQuantizer.QT_fp16,
            faiss.METRIC_INNER_PRODUCT,
            False,
        )
        index.train(_sample(folder, segments, dimension, share=min(1.0, lists * _TRAINING_ROWS_A_LIST / rows)))
        index.nprobe = max(_LEAST_PROBED, int(lists * _SHARE_PROBED))
    kept: list[Ordinals] = []
    for ordinals, vectors in _blocks(folder, segments):
        index.add(vectors)
        kept.append(ordinals)
    return _write(folder, name, index, np.concatenate(kept))


class DenseReader:
    """Searches an embedding half. Safe to use from several threads.

    ``segments`` may be none: what is not embedded yet is found by its words alone. Opening raises ``RuntimeError`` if
    unreadable, ``DeviceMissingError`` when it cannot be put on ``device``.
    """

    def __init__(
        self,
        folder: Path,
        segments: tuple[Segment, ...],
        dimension: int,
        *,
        device: Device = "cpu",
        scratch_bytes: int = SCRATCH_BYTES,
    ) -> None:
        self.dimension = dimension
        self._parts: list[_Mapped | _Copied] = []
        for segment in segments:
            mapped = _Mapped(folder, segment)
            if mapped.index.d != dimension:
                raise RuntimeError(f"a segment has {mapped.index.d} dimensions, not {dimension}")
            self._parts.append(
                mapped if device == "cpu" else _Copied(folder, segment, dimension, device, scratch_bytes)
            )

    def __len__(self) -> int:
        return sum(part.live for part in self._parts)

    def search(self, vector: NDArray[np.floating], limit: int) -> list[int]:
        """Ordinals of at most ``limit`` nearest rows to a vector of shape ``(dim,)``, nearest first.

        Raises ``ValueError`` when the vector has another shape or holds a value that is not finite.
        """
        if not self._parts:
            return []
        if vector.shape != (self.dimension,):
            raise ValueError(f"the query vector must have the shape ({self.dimension},), got {vector.shape}")
        query = normalise(vector[np.newaxis])
        found = [hit for part in self._parts for hit in part.search(query, limit)]
        found.sort(key=lambda hit: (-hit[0], hit[1]))
        return [ordinal for _, ordinal in found[:limit]]


class _Mapped:
    """One segment, searched where it lies."""

    def __init__(self, folder: Path, segment: Segment) -> None:
        self.index = open_segment(folder, segment)
        self.live = segment.live
        self._ordinals = read_ordinals(folder, segment)
        if int(self.index.ntotal) != segment.rows or len(self._ordinals) != segment.rows:
            raise RuntimeError("a segment has another number of rows than the manifest says")
        self._params: Any = None
        if segment.tombs:
            alive = _faiss.IDSelectorBitmap(np.fromfile(folder / segment.tombs, dtype=np.uint8))
            self._params = (
                _faiss.SearchParametersIVF(sel=alive, nprobe=self.index.nprobe)
                if segment.sealed
                else _faiss.SearchParameters(sel=alive)
            )

    def search(self, query: Vectors, limit: int) -> Iterator[tuple[float, int]]:
        return _hits(self.index.search(query, min(limit, self.live), params=self._params), self._ordinals)


class _Copied:
    """The live rows of one segment on another device, where all of them are compared."""

    def __init__(self, folder: Path, segment: Segment, dimension: int, device: Device, scratch_bytes: int) -> None:
        flat = faiss.IndexFlatIP(dimension)
        kept: list[Ordinals] = [np.zeros(0, dtype=np.int64)]
        for ordinals, vectors in read_blocks(folder, segment):
            flat.add(vectors)
            kept.append(ordinals)
        self.live = segment.live
        self._ordinals = np.concatenate(kept)
        self._index = to_device(flat, device, scratch_bytes=scratch_bytes)

    def search(self, query: Vectors, limit: int) -> Iterator[tuple[float, int]]:
        return _hits(self._index.search(query, min(limit, self.live)), self._ordinals)


def _hits(found: tuple[Any, Any], ordinals: Ordinals) -> Iterator[tuple[float, int]]:
    scores, rows = found
    for score, row in zip(scores[0].tolist(), rows[0].tolist(), strict=True):
        # Lists that hold fewer than asked for fill up with -1.
        if row >= 0:
            yield score, int(ordinals[row])


def open_segment(folder: Path, segment: Segment) -> Any:
    """A segment's FAISS index, its vectors mapped from the file. Raises ``RuntimeError`` if unreadable."""
    flags = faiss.IO_FLAG_MMAP if segment.sealed else faiss.IO_FLAG_MMAP_IFC
    return faiss.read_index(str(folder / f"{segment.name}.faiss"), flags)


def read_ordinals(folder: Path, segment: Segment) -> Ordinals:
    return np.memmap(folder / f"{segment.name}.ordinals", dtype=np.int64, mode="r")


def read_alive(folder: Path, segment: Segment) -> NDArray[np.bool_]:
    if segment.tombs is None:
        return np.ones(segment.rows, dtype=np.bool_)
    bits = np.fromfile(folder / segment.tombs, dtype=np.uint8)
    return np.unpackbits(bits, bitorder="little", count=segment.rows).astype(np.bool_)


def read_blocks(folder: Path, segment: Segment) -> Iterator[tuple[Ordinals, Vectors]]:
    """The live rows of a segment with their ordinals, block by block."""
    index, ordinals, alive = open_segment(folder, segment), read_ordinals(folder, segment), read_alive(folder, segment)
    for start in range(0, segment.rows, _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, segment.rows - start)
        keep = alive[start : start + count]
        yield np.asarray(ordinals[start : start + count])[keep], index.reconstruct_n(start, count)[keep]


def _blocks(folder: Path, segments: list[Segment]) -> Iterator[tuple[Ordinals, Vectors]]:
    for segment in segments:
        yield from read_blocks(folder, segment)


def _sample(folder: Path, segments: list[Segment], dimension: int, share: float) -> Vectors:
    chosen = np.random.default_rng(0)
    parts = [vectors[chosen.random(len(vectors)) < share] for _, vectors in _blocks(folder, segments)]
    return np.concatenate([np.zeros((0, dimension), dtype=np.float32), *parts])


def _flat(dimension: int) -> faiss.Index:
    return faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)


def _write(folder: Path, name: str, index: faiss.Index, ordinals: Ordinals) -> Segment:
    folder.mkdir(exist_ok=True)
    faiss.write_index(index, str(folder / f"{name}.faiss"))
    ordinals.astype(np.int64).tofile(folder / f"{name}.ordinals")
    return Segment(name, len(ordinals), sealed=isinstance(index, faiss.IndexIVF))
