"""Builds a folder once, so that it is seen complete or not at all, whoever else is building it and whatever is killed.

Beside the folder ``X`` stand ``.X.lock`` (held while somebody builds) and ``.X.building`` (what is not finished yet).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from models.errors import DiskFullError

Progress = Callable[[str], None]

_SLACK = 64 * 2**20  # bytes left free for everything that is not weights


def build_once(
    target: Path, build: Callable[[Path, int], None], *, needed_bytes: Callable[[], int], progress: Progress
) -> Path:
    """``target``, after ``build(folder, lock)`` has filled it, unless it is there already.

    ``lock`` is the descriptor of the lock: a build that works in another process passes it on, so that the lock holds
    until that process has ended too, even when this one is killed.

    Raises :class:`~models.errors.DiskFullError` before building when ``needed_bytes()`` are not free.
    """
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target, progress) as lock:
        if target.is_dir():  # somebody else has built it while we waited
            return target
        _sweep(target.parent)
        _check_space(target, needed_bytes())
        building = _building(target)
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        try:
            build(building, lock)
            _flush(building)
            building.replace(target)
            _flush_one(target.parent)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return target


def _building(target: Path) -> Path:
    return target.with_name(f".{target.name}.building")


def _lock_file(target: Path) -> Path:
    return target.with_name(f".{target.name}.lock")


@contextmanager
def _locked(target: Path, progress: Progress) -> Iterator[int]:
    descriptor = os.open(_lock_file(target), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _try_lock(descriptor):
            progress(f"Waiting for another process that is preparing {target.name}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(parent: Path) -> None:
    """Removes what killed builds left behind: every unfinished folder whose lock nobody holds."""
    for building in parent.glob(".*.building"):
        target = parent / building.name.removeprefix(".").removesuffix(".building")
        descriptor = os.open(_lock_file(target), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if _try_lock(descriptor):
                shutil.rmtree(building, ignore_errors=True)
        finally:
            os.close(descriptor)


def _check_space(target: Path, needed: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if free < needed + _SLACK:
        raise DiskFullError(
            f"Preparing {target.name} needs {needed + _SLACK} bytes in {target.parent}, and {free} are free: "
            "free some space, or point the model home at a larger disk."
        )


def _flush(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        _flush_one(path)
    _flush_one(folder)


def _flush_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
