"""Files and folders as passages: which are read, which are passed over, and why."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from serving.answer.types import Passage
from serving.retrieval.chunking import first_heading, passages
from serving.retrieval.documents import Document
from serving.retrieval.rst import to_markdown

SUFFIXES = frozenset({".md", ".markdown", ".txt", ".rst"})
MAX_FILE_BYTES = 5_000_000


class SkipReason(StrEnum):
    """Why a file was passed over."""

    OTHER_TYPE = "other_type"
    TOO_LARGE = "too_large"
    BINARY = "binary"
    BAD_ENCODING = "bad_encoding"
    EMPTY = "empty"
    UNREADABLE = "unreadable"


@dataclass(slots=True)
class FileReport:
    """What a walk did: files read, passages made, and files passed over by reason. Complete when the walk is."""

    files: int = 0
    passages: int = 0
    skipped: Counter[SkipReason] = field(default_factory=Counter)


class _SkipFileError(Exception):
    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def read_passages(paths: Iterable[Path], report: FileReport) -> Iterator[Passage]:
    """The passages of all text files at ``paths``, folders recursively, in a fixed order. Counts into ``report``.

    A folder as given is the source of its files; a file given by itself has its folder as source. Names that begin with
    a dot are left out below a folder, and links to folders are not followed. Raises ``FileNotFoundError``, before
    anything is read, when a path does not exist.
    """
    given = list(paths)
    missing = [str(path) for path in given if not path.exists()]
    if missing:
        raise FileNotFoundError(f"no such file or folder: {', '.join(missing)}")
    return _read(given, report)


def _read(paths: list[Path], report: FileReport) -> Iterator[Passage]:
    for path in paths:
        for folder, file in _files(path):
            try:
                document = _document(folder, file)
            except _SkipFileError as skip:
                report.skipped[skip.reason] += 1
                continue
            report.files += 1
            for passage in passages(document):
                report.passages += 1
                yield passage


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
