"""What readers give and the index keeps: a document, or what was passed over and why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from serving.answer.types import Passage
from serving.retrieval.records import encode


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be cut, in Markdown or plain, with what all its passages share.

    ``ready`` holds passages that were given as such; ``text`` is then not cut.
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

    @property
    def key(self) -> str:
        """Names the document in every run alike: its source, and its path there if it has one."""
        return self.source if self.source_path is None else f"{self.source}/{self.source_path}"

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change when any of its passages would."""
        digest = hashlib.sha256()
        for part in self._shaping():
            digest.update(f"{len(part)}:".encode() + part)
        return digest.hexdigest()[:16]

    def _shaping(self) -> Iterator[bytes]:
        published = self.published_at and self.published_at.isoformat()
        yield json.dumps(
            [self.title, self.source, self.source_path, self.url, self.repo_path, self.commit_sha, published]
        ).encode()
        if self.ready is None:
            yield self.text.encode("utf-8", "surrogatepass")
        else:
            yield from map(encode, self.ready)


class SkipReason(StrEnum):
    """Why something was passed over."""

    OTHER_TYPE = "other_type"
    TOO_LARGE = "too_large"
    BINARY = "binary"
    BAD_ENCODING = "bad_encoding"
    EMPTY = "empty"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or record that was passed over."""

    path: str
    reason: SkipReason
    detail: str = ""


Item = Document | Skipped
