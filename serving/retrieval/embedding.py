"""Embeds what has no vector yet and publishes it in steps: answers get better while it runs, and it may be killed.

It reads the generation that answers, and takes the lock of writers only to publish a step. So documents may come and go
meanwhile: what a step holds is matched by ordinal, which no two passages of a lineage share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serving.retrieval import dense
from serving.retrieval.catalogue import Catalogue
from serving.retrieval.compaction import next_merge
from serving.retrieval.dense import Ordinals, Vectors
from serving.retrieval.draft import publish
from serving.retrieval.generations import (
    CATALOGUE,
    VECTORS,
    build_lock,
    building_folder,
    embed_lock,
    next_sequence,
    pointer,
)
from serving.retrieval.index import DamagedIndexError, HybridIndex
from serving.retrieval.manifest import Manifest, Segment
from serving.retrieval.records import embedding_text
from serving.retrieval.updating import current_base

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Embeds n texts into an array of shape ``(n, dim)``."""

Embedded = Callable[[int, int], None]
"""Told how many passages have a vector, and of how many."""

_LEAST_STEP, _LARGEST_STEP = 1_024, 16_384
_STEPS = 50


def step_rows(missing: int) -> int:
    """Rows of one published step: a fiftieth of what is missing, but neither many small files nor hours in memory."""
    return min(_LARGEST_STEP, max(_LEAST_STEP, missing // _STEPS))


def embed_missing(
    root: Path,
    embed: Embed,
    *,
    embedder_name: str,
    progress: Embedded,
    batch: int = 256,
    rows_of_step: Callable[[int], int] = step_rows,
    lock_timeout_s: float = 30.0,
) -> Manifest:
    """Gives every passage of the index under ``root`` its vector, however many runs that takes. Returns the manifest.

    Vectors of another embedder are dropped first. Ends early when another process indexes with another embedder. Memory
    holds one step's vectors, or a sealed segment's.

    Raises ``ValueError`` for embeddings of a wrong shape, what :meth:`HybridIndex.open` does, and
    :class:`~serving.answer.errors.IndexLockedError` when another process embeds or writes for longer than
    ``lock_timeout_s`` seconds; what was published before stays.
    """
    with embed_lock(root, lock_timeout_s):
        _adopt(root, embedder_name, lock_timeout_s)
        while True:
            index = HybridIndex.open(root)
            manifest = index.manifest
            if manifest.embedded >= manifest.passages or manifest.embedder != embedder_name:
                return manifest
            ordinals = _missing(index)
            ordinals = ordinals[: rows_of_step(len(ordinals))]
            if not len(ordinals):
                if pointer(root) == index.folder.name:
                    raise DamagedIndexError("the index counts passages it does not hold: run `answer index --verify`")
                continue
            rows = _embed(index, ordinals, embed, batch, progress)
            _publish_rows(root, manifest, ordinals, rows, lock_timeout_s)


def _adopt(root: Path, embedder: str, lock_timeout_s: float) -> None:
    """Begin the embeddings afresh when they are another model's."""
    with build_lock(root, lock_timeout_s), building_folder(root) as folder:
        base = current_base(root)
        if base is None or base.manifest.embedder == embedder:
            return
        base.link(folder, lambda name: not name.startswith(f"{VECTORS}/"))
        with Catalogue(folder / CATALOGUE) as catalogue:
            generation = catalogue.generation(embedder)
        renamed = replace(base.manifest, generation=generation, embedder=embedder, sequence=next_sequence(root))
        publish(root, folder, renamed.with_segments((), 0), base)


def _missing(index: HybridIndex) -> Ordinals:
    """The ordinals of passages without a vector, in order; none when the folder went meanwhile."""
    manifest = index.manifest
    try:
        with Catalogue(index.folder / CATALOGUE) as catalogue:
            missing = catalogue.live(manifest.next_ordinal)
        for segment in manifest.segments:
            missing[dense.read_ordinals(index.folder / VECTORS, segment)] = False
    except FileNotFoundError:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(missing)


def _embed(index: HybridIndex, ordinals: Ordinals, embed: Embed, batch: int, progress: Embedded) -> Vectors:
    """The vectors of the passages at ``ordinals``, row by row."""
    manifest = index.manifest
    parts: list[Vectors] = []
    for start in range(0, len(ordinals), batch):
        some = ordinals[start : start + batch].tolist()
        found = index.passages(some)
        vectors = np.asarray(embed([embedding_text(found[ordinal]) for ordinal in some]))
        if vectors.shape[:1] != (len(some),):
            raise ValueError(f"embeddings of {len(some)} texts have the shape {vectors.shape}")
        parts.append(dense.normalise(vectors))
        known = manifest.dimension or parts[0].shape[1]
        if parts[-1].shape[1] != known:
            raise ValueError(f"embeddings have {parts[-1].shape[1]} dimensions after {known}")
        progress(manifest.embedded + start + len(some), manifest.passages)
    return np.concatenate(parts)


def _publish_rows(root: Path, seen: Manifest, ordinals: Ordinals, rows: Vectors, lock_timeout_s: float) -> None:
    """Adds the rows of passages that are still there to the generation that answers now."""
    with build_lock(root, lock_timeout_s), building_folder(root) as folder:
        base = current_base(root)
        if base is None or (base.manifest.lineage, base.manifest.embedder) != (seen.lineage, seen.embedder):
            return
        base.link(folder, lambda _name: True)
        with Catalogue(folder / CATALOGUE) as catalogue:
            there = catalogue.live(base.manifest.next_ordinal)[ordinals]
        if not there.any():
            return
        sequence, vectors = next_sequence(root), folder / VECTORS
        added = dense.write_segment(vectors, f"{sequence:06}", ordinals[there], rows[there])
        segments = _compact(vectors, [*base.manifest.segments, added], rows.shape[1], f"{sequence:06}")
        manifest = replace(base.manifest, sequence=sequence, built_at=datetime.now(UTC))
        publish(root, folder, manifest.with_segments(segments, rows.shape[1]), base)


def _compact(folder: Path, segments: list[Segment], dimension: int, name: str) -> tuple[Segment, ...]:
    merges = 0
    while chosen := next_merge(segments, dense.SEAL_ROWS):
        merges += 1
        merged = dense.merge(folder, f"{name}-m{merges}", chosen, dimension, dense.SEAL_ROWS)
        segments = [merged, *(each for each in segments if each not in chosen)]
    return tuple(segments)
