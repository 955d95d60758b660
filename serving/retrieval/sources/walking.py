"""Folders and globs as the files in them, in a fixed order, hidden ones left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import has_magic
from pathlib import Path

from serving.retrieval.documents import Skipped, SkipReason
from serving.retrieval.sources.found import Found, found_file, readable
from serving.retrieval.sources.options import SourceError


def walk(folder: Path) -> Iterator[Found | Skipped]:
    """The files of ``folder`` and below. Names that begin with a dot are left out; links to folders are not followed.

    A folder that cannot be listed is passed over.
    """
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as listing:
                entries = sorted((entry for entry in listing if not entry.name.startswith(".")), key=lambda e: e.name)
        except OSError as error:
            yield Skipped(readable(here.as_posix()), SkipReason.UNREADABLE, error.strerror or str(error))
            continue
        folders = []
        for entry in entries:
            path = here / entry.name
            if _is_folder(entry):
                folders.append(path)
            elif not (entry.is_symlink() and path.is_dir()):
                yield found_file(folder, path)
        waiting += reversed(folders)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def is_glob(given: str) -> bool:
    """Whether it is a pattern and not the name of something that exists."""
    return has_magic(given) and not os.path.lexists(given)


def matching(pattern: str) -> list[tuple[Path, Path]]:
    """The files that a pattern such as ``docs/**/*.md`` names, each with the folder before the first wildcard.

    Raises :class:`SourceError` when there is none, and for a pattern that is none.
    """
    parts = Path(pattern).parts
    first = next(number for number, part in enumerate(parts) if has_magic(part))
    folder = Path(*parts[:first])
    try:
        files = sorted(path for path in folder.glob("/".join(parts[first:])) if _is_seen(path, folder))
    except (ValueError, OSError) as error:
        raise SourceError(f"{pattern} is no pattern: {error}; write one such as 'docs/**/*.md'") from error
    if not files:
        raise SourceError(f"no file matches {pattern}; ** stands for folders, as in 'docs/**/*.md'")
    return [(folder, path) for path in files]


def _is_seen(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    try:
        return not hidden and not path.is_dir()
    except OSError:
        return True  # to be reported as what it is, when it is read
