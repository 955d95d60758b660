"""Reads a whole index and says what is wrong with it: files, counts, passages, vectors."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from serving.answer.errors import IndexLockedError, IndexMissingError
from serving.retrieval.catalogue import Catalogue
from serving.retrieval.dense import read_blocks
from serving.retrieval.generations import (
    CATALOGUE,
    EMBED_COMMAND,
    MANIFEST,
    REPLACE_COMMAND,
    VECTORS,
    current_folder,
    embed_lock,
)
from serving.retrieval.index import HybridIndex
from serving.retrieval.manifest import FileSum, Manifest

_AT_ONCE = 2_000
_LENGTH_ERROR = 0.01
"""By how much a vector of 16-bit numbers may miss the length one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and the command that mends it."""

    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.what}: {self.mend}"


def verify(root: Path, progress: Callable[[str], None]) -> tuple[Manifest, list[Fault]]:
    """The manifest of the index that answers, and what is wrong with it; nothing, when it is whole.

    Missing embeddings are a fault unless a process is at work on them. Memory holds a block at a time, and a bit a
    passage. Raises :class:`~serving.answer.errors.IndexMissingError` when there is no manifest to compare with.
    """
    folder = current_folder(root)
    try:
        manifest = Manifest.from_json((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IndexMissingError(f"the index has no manifest that can be read: {REPLACE_COMMAND}") from error
    # Each step relies on the one before: what is in a changed file need not be asked.
    for step in (_files, _counts, _passages, _vectors):
        try:
            faults = [Fault(what, REPLACE_COMMAND) for what in step(folder, manifest, progress)]
        except (IndexMissingError, sqlite3.Error, OSError, ValueError, RuntimeError) as error:
            faults = [Fault(f"the check of {step.__name__[1:]} ended early ({error})", REPLACE_COMMAND)]
        if faults:
            return manifest, faults
    lag = manifest.passages - manifest.embedded
    if lag and not _is_being_embedded(root):
        return manifest, [Fault(f"{lag} of {manifest.passages} passages have no embedding", EMBED_COMMAND)]
    return manifest, []


def _files(folder: Path, manifest: Manifest, progress: Callable[[str], None]) -> Iterator[str]:
    for done, (name, known) in enumerate(manifest.files.items()):
        progress(f"checksums: {done} of {len(manifest.files)} files")
        path = folder / name
        if not path.is_file():
            yield f"{name} is missing"
        elif FileSum.of(path) != known:
            yield f"{name} was changed"


def _counts(folder: Path, manifest: Manifest, progress: Callable[[str], None]) -> Iterator[str]:
    progress("counts")
    with Catalogue(folder / CATALOGUE) as catalogue:
        yield from (f"the catalogue is damaged ({fault})" for fault in catalogue.faults())
        counts = (len(catalogue), catalogue.passages())
    if counts != (manifest.documents, manifest.passages):
        yield f"the catalogue counts {counts[0]} documents and {counts[1]} passages, the manifest other numbers"
    # Opening compares the halves with the manifest.
    HybridIndex.load(folder, checked=False)


def _passages(folder: Path, manifest: Manifest, progress: Callable[[str], None]) -> Iterator[str]:
    index = HybridIndex.load(folder, checked=False)
    with Catalogue(folder / CATALOGUE) as catalogue:
        ordinals = np.flatnonzero(catalogue.live(manifest.next_ordinal))
    for start in range(0, len(ordinals), _AT_ONCE):
        progress(f"passages: {start} of {len(ordinals)}")
        some = ordinals[start : start + _AT_ONCE].tolist()
        missing = len(some) - len(index.passages(some))
        if missing:
            yield f"{missing} passages cannot be read"


def _vectors(folder: Path, manifest: Manifest, progress: Callable[[str], None]) -> Iterator[str]:
    with Catalogue(folder / CATALOGUE) as catalogue:
        live = catalogue.live(manifest.next_ordinal)
    seen = np.zeros_like(live)
    for segment in manifest.segments:
        for ordinals, vectors in read_blocks(folder / VECTORS, segment):
            progress(f"vectors: {int(seen.sum())} of {manifest.embedded}")
            lengths = np.linalg.norm(vectors, axis=1)
            if not (np.isfinite(lengths).all() and ((abs(lengths - 1) < _LENGTH_ERROR) | (lengths == 0)).all()):
                yield f"vectors/{segment.name} holds vectors that are none"
            if not live[ordinals].all() or seen[ordinals].any():
                yield f"vectors/{segment.name} holds vectors of passages that are gone or have another"
            seen[ordinals] = True
    if int(seen.sum()) != manifest.embedded:
        yield f"{int(seen.sum())} passages have a vector, and {manifest.embedded} should"


def _is_being_embedded(root: Path) -> bool:
    try:
        with embed_lock(root, 0.0):
            return False
    except IndexLockedError:
        return True
