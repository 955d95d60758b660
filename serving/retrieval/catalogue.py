"""The documents of a generation: what each is called, where it came from, and which ordinals its passages have.

One SQLite file. It is written while a generation is built and never after; readers that search do not need it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from serving.retrieval.manifest import FORMAT

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    title TEXT NOT NULL,
    url TEXT,
    scope TEXT NOT NULL,
    location TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    passages INTEGER NOT NULL,
    published_at TEXT,
    indexed_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS documents_by_scope ON documents (scope);
"""


@dataclass(frozen=True, slots=True)
class Record:
    """A document as the catalogue keeps it.

    ``number`` is the ordinal of its first passage; the others follow. ``scope`` is what was given to be indexed when it
    was found: a folder, a file, or a name for what is neither. ``location`` is the key as a path to read. Times are
    ISO 8601.
    """

    number: int
    key: str
    source: str
    title: str
    url: str | None
    scope: str
    location: str
    fingerprint: str
    passages: int
    published_at: str | None
    indexed_at: str


_COLUMNS = ", ".join(each.name for each in fields(Record))
_MARKS = ", ".join("?" for _ in fields(Record))
_PUT = f"INSERT OR REPLACE INTO documents ({_COLUMNS}) VALUES ({_MARKS})"  # noqa: S608  # our own names


class Catalogue:
    """Reads a catalogue, and writes one that is being built. Raises ``sqlite3.Error`` for a file that is none,
    and ``FileNotFoundError``.
    """

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        if not writable and not path.exists():
            raise FileNotFoundError(path)
        mode = "rwc" if writable else "ro&immutable=1"
        self._database = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        if writable:
            # Until it is installed nobody else reads it, and what a killed builder leaves is thrown away.
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.executescript(_SCHEMA)
            self._database.execute("CREATE TEMP TABLE seen (key TEXT PRIMARY KEY)")
            self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def finish(self) -> None:
        """Write everything out."""
        self._database.execute("COMMIT")
        self._database.close()

    def see(self, key: str) -> bool:
        """Notes that ``key`` was met in this run; False when it had been already."""
        return self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (key,)).rowcount == 1

    def get(self, key: str) -> Record | None:
        return next(self._select("WHERE key = ?", key), None)

    def put(self, record: Record) -> None:
        """Adds a document, or takes the place of the one with its key."""
        self._database.execute(_PUT, astuple(record))

    def delete(self, number: int) -> None:
        self._database.execute("DELETE FROM documents WHERE number = ?", (number,))

    def unseen(self, scope: str) -> list[Record]:
        """The documents that were found under ``scope`` before and not in this run."""
        return list(
            self._select(
                # What lies below a folder sorts between its name with a slash and with the character after the slash.
                "WHERE (scope = ?1 OR (scope >= ?2 || '/' AND scope < ?2 || '0')) "
                "AND key NOT IN (SELECT key FROM seen)",
                scope,
                scope.rstrip("/"),
            )
        )

    def matching(self, name: str, location: str) -> list[Record]:
        """The documents with the key, place or source ``name``, or that lie at or below the path ``location``."""
        return list(
            self._select(
                # Below a folder, or a row of a file.
                "WHERE ?1 IN (key, source, scope, location) OR ?2 IN (scope, location) "
                "OR (location >= ?3 || '/' AND location < ?3 || '0') "
                "OR (location >= ?3 || '#' AND location < ?3 || '$')",
                name,
                location,
                location.rstrip("/"),
            )
        )

    def __iter__(self) -> Iterator[Record]:
        """By source, then key."""
        return self._select("ORDER BY source, key")

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM documents").fetchone()[0])

    def passages(self) -> int:
        return int(self._database.execute("SELECT coalesce(sum(passages), 0) FROM documents").fetchone()[0])

    def scopes(self, limit: int) -> list[str]:
        """The first ``limit`` scopes by name."""
        rows = self._database.execute("SELECT DISTINCT scope FROM documents ORDER BY scope LIMIT ?", (limit,))
        return [str(row[0]) for row in rows]

    def live(self, ordinals: int) -> NDArray[np.bool_]:
        """Of each ordinal below ``ordinals``, whether a passage has it."""
        mask = np.zeros(ordinals, dtype=np.bool_)
        for number, passages in self._database.execute("SELECT number, passages FROM documents"):
            mask[number : number + passages] = True
        return mask

    def generation(self, embedder: str) -> str:
        """Twelve hexadecimal digits: a hash of every document's key and fingerprint, and of the embedder's name."""
        digest = hashlib.sha256(repr((FORMAT, embedder)).encode())
        for key, fingerprint in self._database.execute("SELECT key, fingerprint FROM documents ORDER BY key"):
            digest.update(f"{key}\0{fingerprint}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:12]

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the file."""
        rows = self._database.execute("PRAGMA integrity_check(5)").fetchall()
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def _select(self, clause: str, *values: Any) -> Iterator[Record]:
        with closing(self._database.execute(f"SELECT {_COLUMNS} FROM documents {clause}", values)) as rows:  # noqa: S608  # our own names
            for row in rows:
                yield Record(*row)
