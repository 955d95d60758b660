"""Files, folders, globs, git repositories and standard input as documents, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from serving.retrieval.documents import Item, Skipped
from serving.retrieval.sources import parsing, repositories
from serving.retrieval.sources.found import Found, Opened, found_file, readable
from serving.retrieval.sources.git import is_top, open_repository
from serving.retrieval.sources.options import Format, Options, SourceError, format_of
from serving.retrieval.sources.walking import is_glob, matching, walk

STDIN = "-"

Files = Iterable[Found | Skipped]


@dataclass(frozen=True, slots=True)
class Source:
    """One input, and lazily what is in it.

    ``scope`` names it in every run alike: the absolute path of a folder, a file or a pattern, ``git:REPOSITORY/PATH``,
    or ``stdin:NAME``. ``is_folder``: each document's ``place`` begins with the scope and a slash.
    """

    scope: str
    items: Iterator[Item]
    is_folder: bool = False


def read(inputs: Sequence[str], options: Options, stdin: BinaryIO | None = None) -> Iterator[Item]:
    """The items of all :func:`sources`, one after the other."""
    return _chained(sources(inputs, options, stdin))


def _chained(found: list[Source]) -> Iterator[Item]:
    for source in found:
        yield from source.items


def sources(inputs: Sequence[str], options: Options, stdin: BinaryIO | None = None) -> list[Source]:
    """The documents of ``inputs`` in a fixed order, and what is passed over and why. Memory holds one document.

    An input is a file, a folder (read recursively), a pattern such as ``docs/**/*.md``, or ``-`` for ``stdin``. A
    folder that is the top of a git repository is read from git: what is tracked, as it is at the commit; see
    :class:`~serving.retrieval.sources.options.Options`. A folder as given is the source of its files, a pattern's is
    its part before the first wildcard, a file's the folder it lies in, git's the repository. A file that is named
    twice is read once.

    Raises :class:`~serving.retrieval.sources.options.SourceError`, before anything is read, for an input that does not
    exist and for git that cannot be asked.
    """
    seen: set[str] | None = set() if len(inputs) > 1 else None  # of one input each file comes once
    return [_source(given, options, stdin, seen) for given in inputs]


def _source(given: str, options: Options, stdin: BinaryIO | None, seen: set[str] | None) -> Source:
    """What is wrong with the input itself is raised here, before the first file is read."""
    is_folder = False
    files: Files
    if given == STDIN:
        piped = _piped(options, stdin)
        scope, files = piped.place, [piped]
    elif is_glob(given):
        scope, files = _absolute(given), _matching(given, options)
    elif not os.path.lexists(given):
        raise SourceError(f"no such file or folder: {given}")
    elif _reads_git(path := Path(given), options):
        repository = open_repository(path, options.rev)
        scope, files = (
            f"{repository.place}/{readable(repository.prefix)}".rstrip("/"),
            repositories.files(repository, options),
        )
        is_folder = path.is_dir()
    else:
        scope, is_folder = _absolute(given), path.is_dir()
        files = walk(path) if is_folder else [found_file(path.parent, path, options.format)]
    return Source(scope, _items(files, options, seen), is_folder)


def _items(files: Files, options: Options, seen: set[str] | None) -> Iterator[Item]:
    left_out = readable(options.left_out.resolve().as_posix()) if options.left_out else None
    for found in files:
        if isinstance(found, Skipped):
            yield found
        elif found.place != left_out and (seen is None or found.place not in seen):
            if seen is not None:
                seen.add(found.place)
            yield from parsing.documents(found, options)


def _matching(pattern: str, options: Options) -> Files:
    if options.git or options.rev:
        raise SourceError(f"{pattern}: git reads a repository, or a folder or file in it; name that, or use --no-git")
    return (found_file(folder, file) for folder, file in matching(pattern))


def _absolute(given: str) -> str:
    """As the places of the files in it begin: of the folder every link is followed, of a file's own name none."""
    path = Path(given)
    return readable((path.resolve() if path.is_dir() else path.parent.resolve() / path.name).as_posix())


def _reads_git(path: Path, options: Options) -> bool:
    if options.rev is not None and options.git is False:
        raise SourceError("a commit is read from git: leave out --rev, or --no-git")
    if options.git is None:
        return options.rev is not None or (path.is_dir() and is_top(path))
    return options.git


def _piped(options: Options, stdin: BinaryIO | None) -> Found:
    if stdin is None:
        raise SourceError("there is no standard input to read; pipe text in, as in `cat notes.md | answer index -`")
    name = options.name
    return Found(
        path=name,
        source=name,
        source_path=None,
        place=f"stdin:{name}",
        format=options.format or format_of(name) or Format.MARKDOWN,
        open=lambda: nullcontext(Opened(stdin)),
    )
