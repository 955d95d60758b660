"""What reading gives and indexing takes: a document, or a file that was passed over and why."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from serving.answer.types import Passage
from serving.retrieval.records import encode

CUT = 1
"""Raised whenever the same document is cut into other passages than before, so that it is indexed anew."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be cut, in Markdown or plain, with what all its passages share.

    ``repo_path`` and ``commit_sha`` are of git: the repository, and the commit in which the file got the text it has.
    ``ready`` are passages that need no cutting; ``text`` is then not looked at. ``place`` is where the document was
    read, for telling documents apart; it may hold paths of this machine and is never shown with an answer.
    """

    text: str
    title: str
    source: str
    source_path: str | None = None
    url: str | None = None
    repo_path: str | None = None
    commit_sha: str | None = None
    published_at: datetime | None = None
    ready: tuple[Passage, ...] | None = None
    place: str | None = None

    @property
    def key(self) -> str:
        """What this document is called in every run, whatever it says today.

        Where it was read; without that, its source and its path there. So a file has one key however it is named on the
        command line, and two folders called ``docs`` keep theirs apart.
        """
        return self.place or f"{self.source}\x1f{self.source_path or self.url or self.title}"

    @property
    def fingerprint(self) -> str:
        """A hash of everything that shapes this document's passages; it must be indexed anew when this changes.

        The commit is part of it: it is the file's own, which changes with the file and not with its repository.
        """
        published = self.published_at and self.published_at.isoformat()
        ready = None if self.ready is None else [encode(passage).decode() for passage in self.ready]
        shaping = [CUT, self.text, self.title, self.source, self.source_path, self.url, self.repo_path]
        return hashlib.sha256(json.dumps([*shaping, self.commit_sha, published, ready]).encode()).hexdigest()


class SkipReason(StrEnum):
    """Why a file, or a row of one, was passed over."""

    OTHER_TYPE = "other_type"
    TOO_LARGE = "too_large"
    BINARY = "binary"
    BAD_ENCODING = "bad_encoding"
    EMPTY = "empty"
    UNREADABLE = "unreadable"
    BAD_ROW = "bad_row"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was passed over: ``path`` is what a person calls it, with ``:LINE`` for a row."""

    path: str
    reason: SkipReason
    detail: str = ""


Item = Document | Skipped
