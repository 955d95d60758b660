"""Files, folders, globs, git repositories and standard input as documents, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

from serving.retrieval.documents import Item, Skipped
from serving.retrieval.sources import parsing, repositories
from serving.retrieval.sources.found import Found, Opened, found_file, readable
from serving.retrieval.sources.git import is_top, open_repository
from serving.retrieval.sources.options import Format, Options, SourceError, format_of
from serving.retrieval.sources.walking import is_glob, matching, walk

STDIN = "-"

Files = Iterator[Found | Skipped]


def read(inputs: Sequence[str], options: Options, stdin: BinaryIO | None = None) -> Iterator[Item]:
    """The documents of ``inputs`` in a fixed order, and what is passed over and why. Memory holds one document.

    An input is a file, a folder (read recursively), a pattern such as ``docs/**/*.md``, or ``-`` for ``stdin``. A
    folder that is the top of a git repository is read from git: what is tracked, as it is at the commit; see
    :class:`~serving.retrieval.sources.options.Options`. A folder as given is the source of its files, a pattern's is
    its part before the first wildcard, a file's the folder it lies in, git's the repository. A file that is named
    twice is read once.

    Raises :class:`~serving.retrieval.sources.options.SourceError`, before anything is read, for an input that does not
    exist and for git that cannot be asked.
    """
    plans = [_files(given, options, stdin) for given in inputs]
    return _documents(plans, options)


def _documents(plans: list[Files], options: Options) -> Iterator[Item]:
    left_out = {readable(options.left_out.resolve().as_posix())} if options.left_out else set[str]()
    # Two inputs may name the same file; of one input each file comes once.
    seen: set[str] | None = set() if len(plans) > 1 else None
    for files in plans:
        for found in files:
            if isinstance(found, Skipped):
                yield found
            elif found.place not in left_out and (seen is None or found.place not in seen):
                if seen is not None:
                    seen.add(found.place)
                yield from parsing.documents(found, options)


def _files(given: str, options: Options, stdin: BinaryIO | None) -> Files:
    """The files of one input. What is wrong with the input itself is raised here, before the first is read."""
    if given == STDIN:
        return iter([_piped(options, stdin)])
    if is_glob(given):
        named = matching(given)
        if options.git or options.rev:
            raise SourceError(f"{given}: git reads a repository, or a folder or file in it; name that, or use --no-git")
        return (found_file(folder, file) for folder, file in named)
    path = Path(given)
    if not os.path.lexists(path):
        raise SourceError(f"no such file or folder: {given}")
    if _reads_git(path, options):
        return repositories.files(open_repository(path, options.rev), options)
    if path.is_dir():
        return walk(path)
    return iter([found_file(path.parent, path, options.format)])


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
