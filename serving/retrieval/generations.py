"""Generations on disk: built aside, switched by one atomic rename, the one before kept for readers that have it open.

ROOT/CURRENT                     the folder of the generation that answers
ROOT/generations/ID-N/           lexical/ · vectors/ · catalogue.sqlite · manifest.json
ROOT/building-PID/               a generation being built; a leftover if nobody holds the lock
ROOT/build.lock                  held by the one that writes
ROOT/embed.lock                  held by the one that embeds; it takes the other for each step it publishes

A file of a generation never changes once it is there. The next generation begins as hard links to the files of this
one, so that it costs what is new; what it takes away, it takes away from its own folder.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from serving.answer.errors import IndexLockedError, IndexMissingError

LEXICAL = "lexical"
VECTORS = "vectors"
CATALOGUE = "catalogue.sqlite"
MANIFEST = "manifest.json"

BUILD_COMMAND = "run `answer index --installed` or `answer index PATH…`"
REPLACE_COMMAND = "run `answer index --installed --replace` or `answer index --replace PATH…`"
EMBED_COMMAND = "run `answer index --embed`"

_CURRENT = "CURRENT"
_GENERATIONS = "generations"
_BUILDING = "building-"
_BUILD_LOCK = "build.lock"
_EMBED_LOCK = "embed.lock"
_POLL_S = 0.05
_FOLDER = re.compile(r"[0-9a-f]{8,64}(?:-(\d{1,18}))?")


def current_folder(root: Path) -> Path:
    """The folder of the generation that answers. Raises :class:`IndexMissingError` when none does."""
    name = pointer(root)
    if name is None:
        raise IndexMissingError(f"there is no index yet: {BUILD_COMMAND}")
    return root / _GENERATIONS / name


def pointer(root: Path) -> str | None:
    """The folder's name that CURRENT holds; None when there is none, or it is damaged."""
    try:
        name = (root / _CURRENT).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    # Anything but a folder's name is a damaged pointer, and must not become a path.
    return name if _FOLDER.fullmatch(name) else None


def next_sequence(root: Path) -> int:
    """A number that no generation under ``root`` has."""
    names = (_FOLDER.fullmatch(path.name) for path in (root / _GENERATIONS).glob("*"))
    return 1 + max((int(name[1] or 0) for name in names if name), default=0)


@contextmanager
def build_lock(root: Path, timeout_s: float) -> Iterator[None]:
    """Be the only writer under ``root``. Waits ``timeout_s`` seconds, then raises :class:`IndexLockedError`.

    The system frees the lock of a process that dies, so it cannot be left behind.
    """
    with _lock(root, _BUILD_LOCK, timeout_s, "building this index"):
        yield


@contextmanager
def embed_lock(root: Path, timeout_s: float) -> Iterator[None]:
    """Be the only embedder under ``root``; as :func:`build_lock`, which may be taken inside it, not around it."""
    with _lock(root, _EMBED_LOCK, timeout_s, "embedding this index"):
        yield


@contextmanager
def _lock(root: Path, name: str, timeout_s: float, what: str) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    with (root / name).open("a") as lock:
        patience = time.monotonic() + timeout_s
        while not _locked(lock.fileno()):
            if time.monotonic() >= patience:
                raise IndexLockedError(
                    f"another process is {what} and did not finish in {timeout_s:g} s: wait for it, or end it"
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


def link(base: Path, folder: Path, names: Iterable[str]) -> None:
    """Let ``folder`` hold the files ``names`` of ``base`` too: the same ones, or copies where links cannot be made."""
    for name in names:
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        try:
            target.hardlink_to(base / name)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(base / name, target)


def install(root: Path, building: Path, name: str) -> None:
    """Move a finished build to its place. Answers do not change yet."""
    _sync_tree(building)
    target = root / _GENERATIONS / name
    target.parent.mkdir(exist_ok=True)
    building.rename(target)
    _sync(target.parent)


def switch(root: Path, name: str) -> None:
    """Let the generation in folder ``name`` answer from now on, in one step. All but it and the one before go."""
    previous = pointer(root)
    aside = root / f"{_CURRENT}.new"
    with aside.open("w") as file:
        file.write(f"{name}\n")
        file.flush()
        os.fsync(file.fileno())
    aside.replace(root / _CURRENT)
    _sync(root)
    for folder in (root / _GENERATIONS).iterdir():
        if folder.name not in {name, previous}:
            shutil.rmtree(folder, ignore_errors=True)


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
