"""The hybrid index as it is searched: one generation, opened whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from serving.answer.errors import IndexMissingError
from serving.answer.types import Passage
from serving.retrieval.accelerator import SCRATCH_BYTES, Device
from serving.retrieval.dense import DenseReader
from serving.retrieval.fusion import reciprocal_rank_fusion
from serving.retrieval.generations import (
    EMBED_COMMAND,
    LEXICAL,
    MANIFEST,
    REPLACE_COMMAND,
    VECTORS,
    current_folder,
    pointer,
)
from serving.retrieval.lexical import LexicalReader
from serving.retrieval.manifest import FileSum, Manifest, OtherFormatError, ends_of

CHECKED_BYTES = 256 * 2**20
"""An index up to this size is read whole when it is opened, to compare every checksum; of a larger one, each file's
size and ends. ``answer index --verify`` always reads all."""

_PATIENCE = 10


class OtherEmbedderError(IndexMissingError):
    """The index was embedded with another model."""

    code: ClassVar[str] = "index_other_embedder"


class DamagedIndexError(IndexMissingError):
    """Files of the index are missing or changed."""

    code: ClassVar[str] = "index_damaged"


class HybridIndex:
    """BM25 and embeddings over the same passages. Synchronous, read-only, safe to use from several threads."""

    def __init__(self, folder: Path, manifest: Manifest, lexical: LexicalReader, dense: DenseReader) -> None:
        self.folder = folder
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
        index = cls._current(root, device, scratch_bytes)
        if embedder_name not in {None, index.manifest.embedder}:
            raise OtherEmbedderError(
                f"the index was built with the embedder {index.manifest.embedder!r}, not {embedder_name!r}: "
                f"{EMBED_COMMAND}"
            )
        return index

    @classmethod
    def _current(cls, root: Path, device: Device, scratch_bytes: int) -> HybridIndex:
        for _ in range(_PATIENCE):
            folder = current_folder(root)
            try:
                return cls.load(folder, device=device, scratch_bytes=scratch_bytes)
            except IndexMissingError:
                # A folder may go while it is being opened, when writers have published twice since.
                if pointer(root) == folder.name:
                    raise
        return cls.load(current_folder(root), device=device, scratch_bytes=scratch_bytes)

    @classmethod
    def load(
        cls, folder: Path, *, checked: bool = True, device: Device = "cpu", scratch_bytes: int = SCRATCH_BYTES
    ) -> HybridIndex:
        """Open the generation in ``folder``, whether it is the one that answers or not. Raises as :meth:`open`.

        ``checked`` compares the files with their checksums.
        """
        manifest = _manifest(folder)
        with _damage():
            if checked:
                check_files(folder, manifest.files)
            lexical = LexicalReader(folder / LEXICAL)
            dense = DenseReader(
                folder / VECTORS, manifest.segments, manifest.dimension, device=device, scratch_bytes=scratch_bytes
            )
        if manifest.passages != len(lexical) or manifest.embedded != len(dense) or len(dense) > len(lexical):
            raise DamagedIndexError(f"the parts of the index do not belong together: {REPLACE_COMMAND}")
        return cls(folder, manifest, lexical, dense)

    @property
    def generation(self) -> str:
        return self.manifest.generation

    @property
    def version(self) -> str:
        """The generation, and how much of it is embedded when that is not all."""
        return self.manifest.version

    def __len__(self) -> int:
        return self.manifest.passages

    def lexical(self, query: str, limit: int) -> list[Passage]:
        """At most ``limit`` passages by BM25 alone, best first; scores are BM25, from 0 up. ``query`` is any text."""
        with _damage(panics_only=True):
            hits = self._lexical.search(query, limit)
            found = self._lexical.passages(hit.ordinal for hit in hits)
        return [found[hit.ordinal].scored(hit.score) for hit in hits]

    def frequencies(self, words: Sequence[str]) -> list[int]:
        """How many passages hold each of ``words``."""
        with _damage(panics_only=True):
            return self._lexical.frequencies(words)

    def hybrid(
        self, query: str, query_vector: NDArray[np.floating], limit: int, pool: int, *, words: bool = True
    ) -> list[Passage]:
        """At most ``limit`` passages from the best ``pool`` of each half, fused by rank, best first.

        ``query_vector`` has the shape ``(dimension,)`` and any length; a score is the sum of reciprocal ranks, at most
        2 / 6. Passages that are not embedded yet come by their words alone; without ``words`` they do not come.
        Raises ``ValueError`` for a vector of another shape or one that is not finite.
        """
        if limit < 1:
            return []
        pool = max(pool, limit)
        with _damage(panics_only=True):
            lexical = [hit.ordinal for hit in self._lexical.search(query, pool)] if words else []
            fused = reciprocal_rank_fusion([lexical, self._dense.search(query_vector, pool)])[:limit]
            found = self._lexical.passages(ordinal for ordinal, _ in fused)
        return [found[ordinal].scored(score) for ordinal, score in fused]

    def passages(self, ordinals: Iterable[int]) -> dict[int, Passage]:
        """The passages at ``ordinals``, each with its ordinal, in no order."""
        with _damage():
            return self._lexical.passages(ordinals)


def check_files(folder: Path, files: dict[str, FileSum]) -> None:
    """Raises ``OSError`` or ``ValueError`` when a file is missing or not what it was; see :data:`CHECKED_BYTES`."""
    whole = sum(each.size for each in files.values()) <= CHECKED_BYTES
    for name, known in files.items():
        path = folder / name
        if path.stat().st_size != known.size:
            raise ValueError(f"{name} has another size")
        if (FileSum.of(path) != known) if whole else (ends_of(path) != known.ends):
            raise ValueError(f"{name} was changed")


def _manifest(folder: Path) -> Manifest:
    try:
        return Manifest.from_json((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise DamagedIndexError(f"the index is incomplete: {REPLACE_COMMAND}") from error
    except OtherFormatError as error:
        raise IndexMissingError(f"the index cannot be read ({error}): {REPLACE_COMMAND}") from error
    except ValueError as error:
        raise DamagedIndexError(f"the index cannot be read: {REPLACE_COMMAND}") from error


@contextmanager
def _damage(*, panics_only: bool = False) -> Iterator[None]:
    """What the libraries raise over damaged files, as the error that names the command.

    What they say names paths of this machine, which are no matter of the caller's.
    """
    # ValueError is tantivy's, RuntimeError FAISS's, KeyError and TypeError of a passage's record, and a size that is
    # read from garbage fits no memory.
    kinds = (OSError, ValueError, RuntimeError, MemoryError, KeyError, TypeError)
    try:
        yield
    except BaseException as error:
        # Rust's panics come as an exception that is no Exception, of a class that cannot be imported.
        panic = type(error).__name__ == "PanicException"
        if panic or (not panics_only and isinstance(error, kinds)):
            raise DamagedIndexError(f"the index is damaged: {REPLACE_COMMAND}") from error
        raise
