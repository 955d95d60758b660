"""The tracked files of a git repository, each with the commit that it got its text in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from serving.retrieval.documents import Skipped, SkipReason
from serving.retrieval.sources.found import Found, Opened, readable
from serving.retrieval.sources.git import Blobs, Entry, Repository
from serving.retrieval.sources.options import Options, format_of


def files(repository: Repository, options: Options) -> Iterator[Found | Skipped]:
    """What is tracked at the repository's commit, hidden names left out; what differs in the work tree is not seen.

    A file of no known type gives a skip at once: its history is not looked for.
    """
    alone = options.format if repository.prefix and not repository.prefix.endswith("/") else None
    entries = [entry for entry in repository.entries() if not _is_hidden(entry.path, repository.prefix)]
    wanted = {entry.path for entry in entries if alone or format_of(entry.path)}
    touched = repository.touched(wanted) if wanted else {}
    with repository.blobs() as blobs:
        for entry in entries:
            path = readable(f"{repository.name}/{entry.path}")
            if entry.path not in wanted:
                yield Skipped(path, SkipReason.OTHER_TYPE)
                continue
            last = touched.get(entry.path)
            yield Found(
                path=path,
                source=repository.name,
                source_path=readable(entry.path),
                place=readable(f"{repository.place}/{entry.path}"),
                format=alone or format_of(entry.path),
                open=partial(_open, blobs, entry, last.at if last else None),
                repo_path=repository.name,
                commit_sha=last.sha if last else repository.commit,
            )


def _is_hidden(path: str, prefix: str) -> bool:
    """Below what was asked for; a hidden folder that is named is read."""
    return any(
        part.startswith(".") for part in os.path.relpath(path, prefix or ".").split("/") if part not in {".", ".."}
    )


@contextmanager
def _open(blobs: Blobs, entry: Entry, dated: datetime | None) -> Iterator[Opened]:
    with blobs.open(entry.oid) as stream:
        yield Opened(stream, entry.size, dated)
