"""Generations on disk: built aside, switched by one atomic rename, the one before kept for readers that have it open.

ROOT/CURRENT                     the id of the generation that answers
ROOT/generations/ID/             lexical/ · vectors.faiss · manifest.json
ROOT/building-PID/               a generation being built; a leftover if nobody holds the lock
ROOT/build.lock                  held by the one builder
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serving.answer.errors import IndexLockedError, IndexMissingError

LEXICAL = "lexical"
VECTORS = "vectors.faiss"
MANIFEST = "manifest.json"

BUILD_COMMAND = "run `answer index --installed` or `answer index PATH…`"

_CURRENT = "CURRENT"
_GENERATIONS = "generations"
_BUILDING = "building-"
_LOCK = "build.lock"
_POLL_S = 0.05
_ID = re.compile(r"[0-9a-f]{8,64}")


def current_folder(root: Path) -> Path:
    """The folder of the generation that answers. Raises :class:`IndexMissingError` when none does."""
    generation = _read_pointer(root)
    if generation is None:
        raise IndexMissingError(f"there is no index yet: {BUILD_COMMAND}")
    return generation_folder(root, generation)


def generation_folder(root: Path, generation: str) -> Path:
    return root / _GENERATIONS / generation


@contextmanager
def build_lock(root: Path, timeout_s: float) -> Iterator[None]:
    """Be the only builder under ``root``. Waits ``timeout_s`` seconds, then raises :class:`IndexLockedError`.

    The system frees the lock of a process that dies, so it cannot be left behind.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / _LOCK).open("a") as lock:
        patience = time.monotonic() + timeout_s
        while not _locked(lock.fileno()):
            if time.monotonic() >= patience:
                raise IndexLockedError(
                    f"another process is building this index and did not finish in {timeout_s:g} s: "
                    "wait for it, or end it"
                )
            time.sleep(_POLL_S)
        yield


@contextmanager
def building_folder(root: Path) -> Iterator[Path]:
    """An empty folder to build in. Leftovers of builders that died go first; call it with the lock held.

    Whatever is still there at the end (after an error, or because it was not wanted) is removed.
    """
    for leftover in root.glob(f"{_BUILDING}*"):
        shutil.rmtree(leftover)
    folder = root / f"{_BUILDING}{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install(root: Path, building: Path, generation: str) -> None:
    """Move a finished build to its place, over an unreadable generation of the same id. Answers do not change yet."""
    _sync_tree(building)
    target = generation_folder(root, generation)
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    building.rename(target)
    _sync(target.parent)


def switch(root: Path, generation: str) -> None:
    """Let ``generation`` answer from now on, in one step. All but it and the one before are removed."""
    previous = _read_pointer(root)
    if previous == generation:
        return
    aside = root / f"{_CURRENT}.new"
    with aside.open("w") as pointer:
        pointer.write(f"{generation}\n")
        pointer.flush()
        os.fsync(pointer.fileno())
    aside.replace(root / _CURRENT)
    _sync(root)
    for folder in (root / _GENERATIONS).iterdir():
        if folder.name not in {generation, previous}:
            shutil.rmtree(folder, ignore_errors=True)


def _read_pointer(root: Path) -> str | None:
    try:
        generation = (root / _CURRENT).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    # Anything but an id is a damaged pointer, and must not become a path.
    return generation if _ID.fullmatch(generation) else None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_tree(folder: Path) -> None:
    """Everything in ``folder`` must be on disk before a pointer to it is, or a power cut could leave an empty index."""
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
