"""The store of weights: ``HOME/weights/JOB/HASH/``, each folder under a hash of what is in it, and never changed.

A folder is there whole or not at all, whoever adds it and whatever is killed. A reference to one is
``weights:JOB@HASH``; what a hash names today it names for good, which is what makes rolling back safe.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from models.building import Progress, build_once
from models.errors import ModelNotFoundError, ModelUnusableError

KIND = "weights"
"""The first word of a reference to the store."""

_JOB = re.compile(r"[a-z][a-z0-9_-]*")
_HASH = re.compile(r"[0-9a-f]{12}")
_NOT_LOADED = ("*.md", "metrics.json", "metrics.jsonl")
"""Prose and measurements beside the weights: copied, and no part of what they are."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One set of weights in the store. ``size`` in bytes; ``added_at`` in UTC."""

    job: str
    hash: str
    folder: Path
    size: int
    added_at: datetime

    @property
    def reference(self) -> str:
        return reference_to(self.job, self.hash)


def reference_to(job: str, digest: str) -> str:
    """The reference to the weights of ``job`` under the hash ``digest``."""
    return f"{KIND}:{job}@{digest}"


def content_hash(folder: Path) -> str:
    """Twelve hex digits of the SHA-256 of every file in ``folder`` that loading may read, each with its path.

    Reads all of it: a hash that names weights for good may not overlook a byte.
    """
    digest = hashlib.sha256()
    for path in _files(folder):
        if any(path.match(pattern) for pattern in _NOT_LOADED):
            continue
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256")
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content.hexdigest()}\0".encode())
    return digest.hexdigest()[:12]


def name_of(reference: str, folder: Path) -> str:
    """What an answer's ``versions`` call the weights in ``folder``, which ``reference`` names: a label and their hash.

    The same weights have the same hash wherever they lie.
    """
    kind, _, name = reference.partition(":")
    return name if kind == KIND else f"{folder.name}@{content_hash(folder)}"


class WeightsStore:
    """The weights that were added on this machine, in ``home``. Safe to use from several processes at once."""

    def __init__(self, home: Path) -> None:
        self._root = home.absolute() / KIND

    def add(self, job: str, folder: Path, *, progress: Progress) -> Stored:
        """Copies the weights in ``folder`` into the store, unless they are there. Blocks.

        Raises :class:`~models.errors.ModelUnusableError` when ``folder`` changes meanwhile or ``job`` is no name,
        :class:`~models.errors.DiskFullError`.
        """
        if not _JOB.fullmatch(job):
            raise ModelUnusableError(f"{job!r} is no name of a job: give one such as citation or classifier.")
        digest = content_hash(folder)

        def build(target: Path, _lock: int) -> None:
            progress(f"Copying {_size(folder) / 2**20:.1f} MiB into the store")
            for path in _files(folder):
                copy = target / path.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
                copy.chmod(0o444)
            if content_hash(target) != digest:
                raise ModelUnusableError(f"{folder} was changed while it was copied: add it again once it is at rest.")

        build_once(self._root / job / digest, build, needed_bytes=lambda: _size(folder), progress=progress)
        return self.get(job, digest)

    def get(self, job: str, digest: str) -> Stored:
        """The weights of ``job`` under ``digest``.

        Raises :class:`~models.errors.ModelNotFoundError`, with the hashes there are.
        """
        there = self.of(job) if _JOB.fullmatch(job) else []
        for stored in there:
            if stored.hash == digest:
                return stored
        have = ", ".join(stored.hash for stored in there) or "none: add some with `answer weights add`"
        raise ModelNotFoundError(f"No weights {digest!r} of the job {job!r} are in {self._root}; there are: {have}.")

    def locate(self, name: str) -> Path:
        """The folder of ``JOB@HASH``. Raises :class:`~models.errors.ModelNotFoundError`, with the hashes there are."""
        job, _, digest = name.partition("@")
        return self.get(job, digest).folder

    def of(self, job: str) -> list[Stored]:
        """The weights of ``job``, newest first."""
        folders = [path for path in (self._root / job).glob("*") if _HASH.fullmatch(path.name) and path.is_dir()]
        found = [_stored(job, path) for path in folders]
        return sorted(found, key=lambda stored: (stored.added_at, stored.hash), reverse=True)

    def __iter__(self) -> Iterator[Stored]:
        for folder in sorted(self._root.glob("*")):
            if _JOB.fullmatch(folder.name):
                yield from self.of(folder.name)


def _stored(job: str, folder: Path) -> Stored:
    added = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return Stored(job, folder.name, folder, _size(folder), added)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("[!.]*") if path.is_file())


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))
