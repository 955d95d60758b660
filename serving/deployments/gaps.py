"""The gap backlog as the Router holds it: on the settings' database, grouped by the Embedder deployment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from ray.serve.handle import DeploymentHandle

from serving.answer.wire import Answer
from serving.deployments.base import deadline_in
from serving.deployments.handles import RemoteEmbedder
from serving.gaps.backlog import Backlog
from serving.gaps.database import Database
from serving.gaps.errors import GapsDisabledError
from serving.gaps.records import GapPage, GapQuery
from serving.gaps.store import GapStore
from serving.gaps.vectors import Vectors
from serving.settings import Settings

EMBED_S = 30.0
CLOSE_S = 5.0


class Gaps:
    """A running :class:`~serving.gaps.backlog.Backlog`, or nothing where the settings want none."""

    def __init__(self, settings: Settings, embedder: DeploymentHandle) -> None:
        self._backlog: Backlog | None = None
        chosen = settings.gaps
        if not chosen.enabled:
            return
        remote = RemoteEmbedder(embedder)

        async def embed(questions: Sequence[str]) -> Vectors:
            return await remote.embed(questions, deadline=deadline_in(EMBED_S), query=True)

        store = GapStore(Database.of(chosen, home=settings.home), chosen)
        self._backlog = Backlog(
            store,
            chosen,
            embed=embed,
            embedder=settings.models.embedder.model,
            now=lambda: datetime.now(UTC),
            clock=time.monotonic,
        )
        self._backlog.start()

    def record(self, question: str, answer: Answer, *, tenant: str | None = None) -> None:
        if self._backlog is not None:
            self._backlog.record(question, answer, tenant=tenant)

    async def page(self, query: GapQuery) -> GapPage:
        """One page of gaps. Raises :class:`~serving.answer.errors.AnswerError`."""
        if self._backlog is None:
            raise GapsDisabledError("no knowledge gaps are kept here; set gaps.enabled to true")
        return await self._backlog.page(query)

    async def close(self) -> None:
        """Writes what waits, for a few seconds at most."""
        if self._backlog is not None:
            await self._backlog.close(CLOSE_S)
