"""Where a value came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from serving.layering.keys import Path

Kind = Literal["default", "file", "environment", "flag"]


@dataclass(frozen=True, slots=True)
class Origin:
    """``place`` is ``FILE:LINE``, the variable, or the flag; empty for a default."""

    kind: Kind
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.kind


DEFAULT = Origin("default")


@dataclass(slots=True)
class Origins:
    """What set which value. A mapping, a list or nothing at all counts for everything below it."""

    _by_path: dict[Path, Origin] = field(default_factory=dict)

    def put(self, path: Path, value: Any, origin: Origin) -> None:
        """``origin`` sets ``value`` at ``path``; a mapping sets what it names and leaves the rest to what set it."""
        if isinstance(value, dict) and value:
            self._by_path.pop(path, None)
            for name, part in value.items():
                self.put((*path, str(name)), part, origin)
            return
        for below in [one for one in self._by_path if one[: len(path)] == path]:
            del self._by_path[below]
        self._by_path[path] = origin

    def of(self, path: Path) -> Origin:
        """The origin of the value at ``path``."""
        starts = (path[:end] for end in range(len(path), 0, -1))
        return next((self._by_path[start] for start in starts if start in self._by_path), DEFAULT)

    def within(self, path: Path) -> list[Origin]:
        """The origins of what was set at or below ``path``."""
        return [origin for one, origin in self._by_path.items() if one[: len(path)] == path]
