"""The Retriever deployment: the embedded index; the query's embedding comes from the Embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from ray import serve
from ray.serve.handle import DeploymentHandle

from serving.answer.types import Passage
from serving.deployments.base import WARM_UP_S, deadline_in
from serving.deployments.handles import RemoteEmbedder
from serving.deployments.logs import join_serve_log
from serving.retrieval.index import HybridIndex
from serving.retrieval.retriever import IndexRetriever
from serving.settings import Settings


@serve.deployment(name="Retriever")
class RetrieverDeployment:
    def __init__(self, settings: Settings, embedder: DeploymentHandle) -> None:
        join_serve_log()
        self._embedder = RemoteEmbedder(embedder)
        chosen = settings.retrieval
        index = HybridIndex.open(
            settings.index_path, device=chosen.device, scratch_bytes=chosen.gpu_scratch_mib * 2**20
        )
        self._retriever = IndexRetriever(index, self._embed)

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
