"""Files and folders as documents: which are read, which are passed over, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from serving.retrieval.chunking import first_heading
from serving.retrieval.documents import Document, Item, Skipped, SkipReason
from serving.retrieval.rst import to_markdown

SUFFIXES = frozenset({".md", ".markdown", ".txt", ".rst"})
MAX_FILE_BYTES = 5_000_000


class _SkipFileError(Exception):
    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def read(path: Path) -> Iterator[Item]:
    """The text files at ``path`` as documents, a folder recursively, in a fixed order; and what is passed over.

    A folder as given is the source of its files; a file given by itself has its folder as source. Names that begin with
    a dot are left out below a folder, and links to folders are not followed. Raises ``FileNotFoundError``, before
    anything is read, when the path does not exist.
    """
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    return _read(path)


def _read(path: Path) -> Iterator[Item]:
    for folder, file in _files(path):
        try:
            yield _document(folder, file)
        except _SkipFileError as skip:
            yield Skipped(str(file), skip.reason)


def _files(path: Path) -> Iterator[tuple[Path, Path]]:
    """Each file with the folder that is its source."""
    if not path.is_dir():
        yield path.parent, path
        return
    for parent, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield path, Path(parent) / name


def _document(folder: Path, file: Path) -> Document:
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise _SkipFileError(SkipReason.OTHER_TYPE)
    text = _text(file)
    if suffix == ".rst":
        text = to_markdown(text)
    return Document(
        text=text,
        title=first_heading(text) or file.name,
        # The folder one stands in has no name of its own as given.
        source=folder.resolve().name if str(folder) == "." else folder.as_posix(),
        source_path=file.relative_to(folder).as_posix(),
        place=(folder.resolve() / file.relative_to(folder)).as_posix(),
    )


def _text(file: Path) -> str:
    try:
        if not file.is_file():
            raise _SkipFileError(SkipReason.UNREADABLE)
        if file.stat().st_size > MAX_FILE_BYTES:
            raise _SkipFileError(SkipReason.TOO_LARGE)
        content = file.read_bytes()
    except OSError as error:
        raise _SkipFileError(SkipReason.UNREADABLE) from error
    if b"\0" in content:
        raise _SkipFileError(SkipReason.BINARY)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _SkipFileError(SkipReason.BAD_ENCODING) from error
    if not text.strip():
        raise _SkipFileError(SkipReason.EMPTY)
    return text.replace("\r\n", "\n").replace("\r", "\n")
