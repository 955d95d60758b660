"""What a generation says of itself: what it holds, how far its embeddings are, and the checksums of its files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

FORMAT = 2
"""Version of the layout and of the analysis of terms. An index of another version has to be built again."""

ENDS_BYTES = 65_536
"""How much of each end of a file has a checksum of its own, to be checked whenever the file is opened."""


class OtherFormatError(ValueError):
    """A manifest of another version of the layout."""


@dataclass(frozen=True, slots=True)
class FileSum:
    """A file's size in bytes, the SHA-256 of all of it, and that of its first and last :data:`ENDS_BYTES`."""

    size: int
    whole: str
    ends: str

    @classmethod
    def of(cls, path: Path) -> FileSum:
        with path.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.stat().st_size, whole, ends_of(path))


def ends_of(path: Path) -> str:
    """The checksum of a file's two ends."""
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(ENDS_BYTES))
        file.seek(max(0, path.stat().st_size - ENDS_BYTES))
        digest.update(file.read(ENDS_BYTES))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of vectors that never changes: ``rows`` of them, of which the passages of ``dead`` are gone.

    ``sealed`` ones are searched by inverted lists, the others whole. ``tombs`` names the file that says which rows are
    dead; None while none is.
    """

    name: str
    rows: int
    dead: int = 0
    sealed: bool = False
    tombs: str | None = None

    @property
    def live(self) -> int:
        return self.rows - self.dead


@dataclass(frozen=True, slots=True)
class Manifest:
    """``generation`` is a hash of the documents and of the embedder's name: the same content has the same one.

    Vectors are no part of it (they differ in the last bits from machine to machine), so ``embedder`` must change
    when the weights do. ``sequence`` counts what was published under one root; ``lineage`` is drawn when an index is
    begun afresh, and within it no ordinal is given twice: ``next_ordinal`` is the first one that is free. ``embedded``
    of the ``passages`` have a vector of ``dimension`` numbers. ``built_at`` is in UTC.
    """

    format: int
    generation: str
    sequence: int
    lineage: str
    documents: int
    passages: int
    embedded: int
    next_ordinal: int
    embedder: str
    dimension: int
    built_at: datetime
    corpus: str
    segments: tuple[Segment, ...] = ()
    files: dict[str, FileSum] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The name of its folder: each step of the embeddings is published in one of its own."""
        return f"{self.generation}-{self.sequence}"

    @property
    def version(self) -> str:
        """``3f2a9c1b7d10`` when every passage has its vector, else ``3f2a9c1b7d10+62%``, rounded down."""
        if self.embedded >= self.passages:
            return self.generation
        return f"{self.generation}+{100 * self.embedded // self.passages}%"

    def with_segments(self, segments: tuple[Segment, ...], dimension: int) -> Manifest:
        return replace(self, segments=segments, dimension=dimension, embedded=sum(each.live for each in segments))

    def to_json(self) -> str:
        fields = asdict(self)
        return json.dumps({**fields, "sum": _sum(fields)}, default=datetime.isoformat, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Raises ``ValueError`` when the text is no manifest or was changed, and :class:`OtherFormatError`."""
        fields: Any = json.loads(text)
        version = fields.get("format") if isinstance(fields, dict) else None
        if version != FORMAT:
            raise OtherFormatError(f"its format is {version!r}, and this version reads {FORMAT}")
        if fields.pop("sum", None) != _sum(fields):
            raise ValueError("its manifest was changed")
        try:
            return cls(
                **{
                    **fields,
                    "built_at": datetime.fromisoformat(fields["built_at"]),
                    "segments": tuple(Segment(**each) for each in fields["segments"]),
                    "files": {name: FileSum(**each) for name, each in fields["files"].items()},
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the manifest has missing or unknown fields ({error})") from error


def _sum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=datetime.isoformat).encode()).hexdigest()
