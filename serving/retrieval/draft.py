"""The next generation while it is built: what is unchanged is linked from the one before, the rest is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from serving.answer.types import Passage
from serving.retrieval.catalogue import Catalogue, Record
from serving.retrieval.chunking import passages
from serving.retrieval.dense import bury
from serving.retrieval.documents import Document
from serving.retrieval.generations import CATALOGUE, LEXICAL, MANIFEST, VECTORS, install, link, next_sequence, switch
from serving.retrieval.lexical import LexicalWriter, is_immutable
from serving.retrieval.manifest import FORMAT, FileSum, Manifest, Segment

_NAMED_SCOPES = 3


@dataclass(frozen=True, slots=True)
class Base:
    """The generation that a draft begins from."""

    folder: Path
    manifest: Manifest

    def link(self, folder: Path, wanted: Callable[[str], bool]) -> None:
        """Give ``folder`` those files of this generation whose names are ``wanted``."""
        link(self.folder, folder, filter(wanted, self.manifest.files))


class Draft:
    """Documents go in and out; :meth:`publish` lets the result answer. For one writer, with the lock held."""

    def __init__(self, folder: Path, base: Base | None, *, lineage: str, embedder: str, now: datetime) -> None:
        self._folder = folder
        self._base = base
        self._lineage = base.manifest.lineage if base else lineage
        self._embedder = embedder
        self._now = now.astimezone(UTC)
        self._next = base.manifest.next_ordinal if base else 0
        self._gone: list[tuple[int, int]] = []
        self._lexical: LexicalWriter | None = None
        # Vectors of another model are of no use.
        self._keeps_vectors = base is not None and base.manifest.embedder == embedder
        if base:
            base.link(folder, self._is_linked)
            (folder / LEXICAL).mkdir(exist_ok=True)
            for name in base.manifest.files:
                if name == CATALOGUE or (name.startswith(f"{LEXICAL}/") and not is_immutable(name)):
                    shutil.copyfile(base.folder / name, folder / name)
        self.catalogue = Catalogue(folder / CATALOGUE, writable=True)

    def _is_linked(self, name: str) -> bool:
        if name.startswith(f"{VECTORS}/"):
            return self._keeps_vectors
        return name.startswith(f"{LEXICAL}/") and is_immutable(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lexical:
            self._lexical.__exit__(kind, error, trace)
        self.catalogue.__exit__(kind, error, trace)

    @property
    def changed(self) -> bool:
        return self._lexical is not None or not self._keeps_vectors

    def add(self, document: Document, key: str, fingerprint: str, *, scope: str) -> int:
        """Adds a document whose key is not there. Returns how many passages it has; of equal ones, one."""
        lexical = self._writer()
        number = self._next
        distinct: dict[str, Passage] = {}
        for passage in passages(document):
            distinct.setdefault(passage.id, passage)
        for ordinal, passage in enumerate(distinct.values(), start=number):
            lexical.add(ordinal, passage, number)
        # One is taken also by a document without passages: its number is its own.
        self._next += max(1, len(distinct))
        self.catalogue.put(
            Record(
                number=number,
                key=key,
                source=plain(document.source),
                title=plain(document.title),
                url=document.url and plain(document.url),
                scope=scope,
                location=key.replace("\x1f", "/"),
                fingerprint=fingerprint,
                passages=len(distinct),
                published_at=document.published_at.isoformat() if document.published_at else None,
                indexed_at=self._now.isoformat(timespec="seconds"),
            )
        )
        return len(distinct)

    def remove(self, record: Record) -> None:
        self._writer()
        self.catalogue.delete(record.number)
        self._gone.append((record.number, record.passages))

    def publish(self, root: Path) -> Manifest:
        """Writes all out and lets it answer."""
        lexical = self._writer()
        lexical.remove([number for number, _ in self._gone])
        lexical.finish()
        documents, count = len(self.catalogue), self.catalogue.passages()
        scopes = self.catalogue.scopes(_NAMED_SCOPES + 1)
        generation = self.catalogue.generation(self._embedder)
        self.catalogue.finish()
        sequence = next_sequence(root)
        manifest = Manifest(
            format=FORMAT,
            generation=generation,
            sequence=sequence,
            lineage=self._lineage,
            documents=documents,
            passages=count,
            embedded=0,
            next_ordinal=self._next,
            embedder=self._embedder,
            dimension=0,
            built_at=self._now,
            corpus=", ".join(scope.rpartition("/")[2] or scope for scope in scopes[:_NAMED_SCOPES])
            + (" and more" if len(scopes) > _NAMED_SCOPES else ""),
        )
        if self._base and self._keeps_vectors:
            segments = self._buried(self._base.manifest.segments, f"{sequence:06}")
            manifest = manifest.with_segments(segments, self._base.manifest.dimension)
        return publish(root, self._folder, manifest, self._base)

    def _writer(self) -> LexicalWriter:
        if self._lexical is None:
            self._lexical = LexicalWriter(self._folder / LEXICAL)
        return self._lexical

    def _buried(self, segments: tuple[Segment, ...], name: str) -> tuple[Segment, ...]:
        if not self._gone:
            return segments
        gone = np.zeros(self._next, dtype=np.bool_)
        for number, count in self._gone:
            gone[number : number + count] = True
        folder = self._folder / VECTORS
        buried = (bury(folder, f"{name}-{place}", each, gone) for place, each in enumerate(segments))
        return tuple(each for each in buried if each.live)


def publish(root: Path, folder: Path, manifest: Manifest, base: Base | None) -> Manifest:
    """Completes the manifest of what was built in ``folder`` and lets it answer."""
    _sweep(folder, manifest.segments)
    files: dict[str, FileSum] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            known = base.manifest.files.get(name) if base else None
            linked = known is not None and base is not None and os.path.samefile(path, base.folder / name)
            files[name] = known if known is not None and linked else FileSum.of(path)
    manifest = replace(manifest, files=files)
    (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    install(root, folder, manifest.folder)
    switch(root, manifest.folder)
    return manifest


def _sweep(folder: Path, segments: tuple[Segment, ...]) -> None:
    """Removes the files of vectors that no segment has any more."""
    kept = {segment.name for segment in segments} | {
        (segment.tombs or "").removesuffix(".tombs") for segment in segments
    }
    for path in (folder / VECTORS).glob("*"):
        if path.stem not in kept:
            path.unlink()


def _named(scopes: list[str]) -> str:
    """The scopes for people to read: paths by their last part."""
    names = [scope.rpartition("/")[2] or scope for scope in scopes[:_NAMED_SCOPES]]
    return ", ".join(names) + (" and more" if len(scopes) > _NAMED_SCOPES else "")


def plain(text: str) -> str:
    """Text that can be stored: file names may hold bytes that are no characters."""
    return text.encode("utf-8", "backslashreplace").decode()
