"""The Retriever deployment: the embedded index; the query's embedding comes from the Embedder."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from ray import serve
from ray.serve.handle import DeploymentHandle

from serving.answer.types import Passage
from serving.deployments.base import WARM_UP_S, deadline_in
from serving.deployments.handles import RemoteEmbedder
from serving.deployments.logs import join_serve_log
from serving.retrieval.index import HybridIndex
from serving.retrieval.live import LiveIndex
from serving.retrieval.retriever import IndexRetriever
from serving.settings import Settings

log = logging.getLogger("ray.serve")


@serve.deployment(name="Retriever")
class RetrieverDeployment:
    async def __init__(self, settings: Settings, embedder: DeploymentHandle) -> None:  # type: ignore[misc]  # Serve awaits it
        join_serve_log()
        chosen = settings.retrieval
        self._embedder = RemoteEmbedder(embedder)
        opener = partial(HybridIndex.open, device=chosen.device, scratch_bytes=chosen.gpu_scratch_mib * 2**20)
        self._live = LiveIndex(settings.index_path, time.monotonic, opener=opener)
        self._retriever = IndexRetriever(
            lambda: self._live.index, self._embed, words=chosen.lexical, vectors=chosen.dense
        )
        self._watch = chosen.watch_s
        self._watching = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Takes up new generations as they come, opened in a thread while the one before answers."""
        while True:
            await asyncio.sleep(self._watch)
            try:
                await asyncio.to_thread(self._live.refresh)
            except Exception:
                log.exception("looking for a newer index failed; looking again in %g s", self._watch)

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # The retriever bounds the whole call by the question's deadline; this is the ceiling for a stuck embedder.
        return await self._embedder.embed(texts, deadline=deadline_in(WARM_UP_S), query=True)

    async def lexical(self, query: str, limit: int, *, timeout_s: float) -> list[Passage]:
        return list(await self._retriever.lexical(query, limit, deadline=deadline_in(timeout_s)))

    async def hybrid(self, query: str, limit: int, *, timeout_s: float) -> list[Passage]:
        return list(await self._retriever.hybrid(query, limit, deadline=deadline_in(timeout_s)))

    async def frequencies(self, words: list[str], *, timeout_s: float) -> list[int]:
        return list(await self._retriever.frequencies(words, deadline=deadline_in(timeout_s)))

    async def version(self) -> str:
        return await self._retriever.version()

    async def check_health(self) -> None:
        await self._retriever.version()
