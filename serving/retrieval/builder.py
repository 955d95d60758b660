"""Builds a generation: passages stream through once, both halves are written in step, then the pointer switches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serving.answer.errors import IndexMissingError
from serving.answer.types import Passage
from serving.retrieval.dense import DenseWriter
from serving.retrieval.generations import (
    LEXICAL,
    MANIFEST,
    VECTORS,
    build_lock,
    building_folder,
    generation_folder,
    install,
    switch,
)
from serving.retrieval.index import HybridIndex
from serving.retrieval.lexical import LexicalWriter
from serving.retrieval.manifest import FORMAT, Manifest
from serving.retrieval.records import embedding_text, encode

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Embeds n texts into an array of shape ``(n, dim)``."""

Progress = Callable[[int, int | None], None]
"""Told how many passages are read, and of how many where that is known."""


def build_index(
    passages: Iterable[Passage],
    root: Path,
    embed: Embed,
    *,
    embedder_name: str,
    corpus: str,
    progress: Progress,
    batch: int = 64,
    lock_timeout_s: float = 30.0,
) -> Manifest:
    """Index ``passages`` under ``root`` and let the new generation answer. Returns its manifest.

    ``embedder_name`` must change when the embedder's weights do; ``corpus`` describes the passages, for people to read.
    Of passages with the same id the first is kept. Memory holds one batch of passages, and the vectors at the end. An
    error, whoever raises it, leaves the generation that answered as it was.

    Raises ``ValueError`` for an empty corpus and for embeddings of a wrong shape, and
    :class:`~serving.retrieval.generations.IndexLockedError` when another builder holds the lock for longer than
    ``lock_timeout_s`` seconds.
    """
    with build_lock(root, lock_timeout_s), building_folder(root) as folder:
        manifest = _write(
            passages, folder, embed, embedder_name=embedder_name, corpus=corpus, progress=progress, batch=batch
        )
        kept = _readable(generation_folder(root, manifest.generation))
        if kept is None:
            install(root, folder, manifest.generation)
        switch(root, manifest.generation)
        return kept or manifest


def _write(
    passages: Iterable[Passage],
    folder: Path,
    embed: Embed,
    *,
    embedder_name: str,
    corpus: str,
    progress: Progress,
    batch: int,
) -> Manifest:
    total = len(passages) if isinstance(passages, Sized) else None
    digest = hashlib.sha256(repr((FORMAT, embedder_name, corpus)).encode())
    read = 0
    with LexicalWriter(folder / LEXICAL) as lexical, DenseWriter(folder / VECTORS) as dense:
        for count, fresh in _batches(passages, batch):
            if fresh:
                vectors = np.asarray(embed([embedding_text(passage) for passage in fresh]))
                if vectors.shape[:1] != (len(fresh),):
                    raise ValueError(f"embeddings of {len(fresh)} texts have the shape {vectors.shape}")
                # Row i of the vectors is the document with ordinal i.
                for ordinal, passage in enumerate(fresh, start=dense.rows):
                    lexical.add(ordinal, passage)
                    digest.update(encode(passage))
                dense.add(vectors)
            read += count
            progress(read, total)
        if dense.rows == 0:
            raise ValueError(
                "nothing to index: no text was found. Name files or folders with .md, .txt or .rst, or use --installed"
            )
        dense.finish()
        lexical.finish()
    manifest = Manifest(
        format=FORMAT,
        generation=digest.hexdigest()[:12],
        passages=dense.rows,
        embedder=embedder_name,
        dimension=dense.dimension,
        built_at=datetime.now(UTC),
        corpus=corpus,
    )
    (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    return manifest


def _batches(passages: Iterable[Passage], size: int) -> Iterator[tuple[int, list[Passage]]]:
    """Passages in batches, without those whose id came before; each with how many were read for it."""
    seen: set[str] = set()
    stream = iter(passages)
    while taken := list(islice(stream, size)):
        fresh = []
        for passage in taken:
            if passage.id not in seen:
                seen.add(passage.id)
                fresh.append(passage)
        yield len(taken), fresh


def _readable(folder: Path) -> Manifest | None:
    try:
        return HybridIndex.load(folder).manifest
    except IndexMissingError:
        return None
