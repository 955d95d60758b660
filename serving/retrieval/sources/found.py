"""A file that was found and may be read: what it is called, and how it is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from serving.retrieval.documents import SkipReason
from serving.retrieval.sources.decoding import SkipError
from serving.retrieval.sources.options import Format, format_of


class Opened(NamedTuple):
    """A file's bytes, their number where it is known before they are read, and the time of the file."""

    stream: BinaryIO
    size: int | None = None
    dated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """``path`` is what a person calls it; ``source``, ``source_path``, ``place`` and the rest are a document's.

    ``open`` raises :class:`~serving.retrieval.sources.decoding.SkipError` or ``OSError``. ``format`` is None for a name
    that tells none.
    """

    path: str
    source: str
    source_path: str | None
    place: str
    format: Format | None
    open: Callable[[], AbstractContextManager[Opened]]
    repo_path: str | None = None
    commit_sha: str | None = None


def found_file(folder: Path, file: Path, form: Format | None = None) -> Found:
    """A file on disk whose source is ``folder``, which it lies in. ``form`` is its format, whatever its name tells."""
    inside = file.relative_to(folder)
    return Found(
        path=readable(file.as_posix()),
        # The folder one stands in has no name of its own as given.
        source=readable(folder.resolve().name if str(folder) == "." else folder.as_posix()),
        source_path=readable(inside.as_posix()),
        place=readable((folder.resolve() / inside).as_posix()),
        format=form or format_of(file.name),
        open=lambda: _open_file(file),
    )


def readable(name: str) -> str:
    """A file's name as text that can be stored: a byte that is no UTF-8 shows as its number."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@contextmanager
def _open_file(file: Path) -> Iterator[Opened]:
    # Looked at before it is opened: opening a device may do something, and opening a pipe may wait for ever.
    _need_regular(os.stat(file))
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        _need_regular(status)
        yield Opened(stream, status.st_size, _moment(status.st_mtime))


def _need_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SkipError(SkipReason.UNREADABLE, "no regular file; text from a pipe is read from standard input, with -")


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
