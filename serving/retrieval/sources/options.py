"""What may be chosen about reading, the kinds of text there are, and the error of a source that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class SourceError(ValueError):
    """A source that was asked for cannot be read at all. The message names what to change."""


class Format(StrEnum):
    MARKDOWN = "md"
    HTML = "html"
    TEXT = "txt"
    RST = "rst"
    JSONL = "jsonl"


class Dates(StrEnum):
    """Where the date of a passage comes from.

    ``front-matter``: what the document says of itself: front matter, an HTML page's metadata, a JSON Lines row's own.
    ``file``: the same, and where it says nothing the file's time; in git that of the file's commit.
    ``none``: passages have no date.
    """

    FRONT_MATTER = "front-matter"
    FILE = "file"
    NONE = "none"


_SUFFIXES = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".xhtml": Format.HTML,
    ".txt": Format.TEXT,
    ".rst": Format.RST,
    ".jsonl": Format.JSONL,
    ".jsonl.gz": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".ndjson.gz": Format.JSONL,
}


def format_of(name: str) -> Format | None:
    """The format that a file's name tells, None when it tells none that is read."""
    suffixes = Path(name.lower()).suffixes[-2:]
    return _SUFFIXES.get("".join(suffixes)) or _SUFFIXES.get(suffixes[-1] if suffixes else "")


@dataclass(frozen=True, slots=True)
class Options:
    """How to read.

    ``format`` is that of standard input and of files named one by one, whatever they are called; ``name`` is what
    standard input is called. ``git``: True reads every input as part of a git repository, False none, None those that
    are a repository's top folder. ``rev`` is the commit, tag or branch to read there. ``left_out`` is a file that is
    being written and must not be read.
    """

    format: Format | None = None
    name: str = "stdin"
    dates: Dates = Dates.FRONT_MATTER
    max_bytes: int = 5_000_000
    git: bool | None = None
    rev: str | None = None
    left_out: Path | None = None
