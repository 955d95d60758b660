"""The parts of a replica that its ``user_config`` can replace while it serves, and what it reports of them.

A deployment's ``user_config`` maps the name of a part to a reference to weights (``weights:citation@HASH``), or to null
for the part without weights of ours; a part that it leaves out is as the settings say. Serve calls ``reconfigure`` on
each replica when the ``user_config`` changes, and sends it no questions until the call returns; a call that raises
costs the replica its life. So replacing goes on in the background while the old part serves, and what went wrong is
reported instead of raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from serving.answer.errors import AnswerError

log = logging.getLogger(__name__)

PREVIOUS = "previous"
"""The key of a ``user_config`` that remembers what each part was before, for rolling back. It changes no part."""

Take = Callable[[str | None], Awaitable[str]]
"""Replaces a part with what a reference names, and returns the name that answers carry for it.

Raises an :class:`~serving.answer.errors.AnswerError` when it cannot; the old part then goes on serving.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of one replica: the reference it was made from, the name that answers carry, and what it is to become.

    ``settled`` is false while a change is under way; ``problem`` says why the last one was refused.
    """

    reference: str | None
    version: str
    wanted: str | None
    settled: bool = True
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The parts of the replica ``replica``, by name."""

    replica: str
    parts: Mapping[str, Part]


class Replaceable:
    """The parts of one replica that can be replaced. ``takes`` does it, for each; used on one event loop."""

    def __init__(self, parts: Mapping[str, Part], takes: Mapping[str, Take]) -> None:
        self._defaults = {name: part.reference for name, part in parts.items()}
        self._parts = dict(parts)
        self._takes = dict(takes)
        self._working: dict[str, asyncio.Task[None]] = {}
        self._starting = True

    @property
    def parts(self) -> Mapping[str, Part]:
        return dict(self._parts)

    async def reconfigure(self, user_config: Mapping[str, Any]) -> None:
        """Makes the parts what ``user_config`` says. The first call is made before the replica serves: it returns when
        they are, and raises when they cannot be. Later ones return at once.
        """
        for name in self._parts:
            wanted = user_config.get(name, self._defaults[name])
            self._parts[name] = replace(self._parts[name], wanted=wanted, problem=None)
            if self._starting:
                await self._take(name, wanted)
            elif name not in self._working and wanted != self._parts[name].reference:
                self._parts[name] = replace(self._parts[name], settled=False)
                self._working[name] = asyncio.create_task(self._follow(name))
        self._starting = False

    async def _follow(self, name: str) -> None:
        """Replaces a part until it is what is wanted, which may change meanwhile, or cannot be."""
        try:
            while (wanted := self._parts[name].wanted) != self._parts[name].reference:
                try:
                    await self._take(name, wanted)
                except Exception as error:
                    if self._parts[name].wanted == wanted:
                        self._refuse(name, error)
                        return
        finally:
            del self._working[name]
            self._parts[name] = replace(self._parts[name], settled=True)

    async def _take(self, name: str, wanted: str | None) -> None:
        if wanted != self._parts[name].reference:
            version = await self._takes[name](wanted)
            self._parts[name] = replace(self._parts[name], reference=wanted, version=version)
            log.info("the %s is %s now", name, version)

    def _refuse(self, name: str, error: Exception) -> None:
        problem = str(error) if isinstance(error, AnswerError) else f"it failed ({type(error).__name__})"
        log.warning("the %s was not replaced: %s", name, problem, exc_info=not isinstance(error, AnswerError))
        self._parts[name] = replace(self._parts[name], problem=problem)
