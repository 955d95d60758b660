"""What is given to be indexed, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from serving.retrieval.documents import Item


@dataclass(frozen=True, slots=True)
class Given:
    """What was given to be indexed, and what was found there.

    ``scope`` names it: a path, absolute, or a name. What was found in the same scope, or below it, in an earlier run
    and is not in ``items`` any more is removed.
    """

    scope: str
    items: Iterable[Item]


@dataclass(slots=True)
class Changes:
    """What a run did, in documents; ``skipped`` counts the files and rows that were passed over."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    passages: int = 0
    skipped: int = 0

    @property
    def read(self) -> int:
        return self.added + self.updated + self.unchanged
