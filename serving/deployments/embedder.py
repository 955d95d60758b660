"""The Embedder deployment: sentence embeddings for queries, and for the reranker that scores with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from ray import serve

from models.batcher.work import Totals
from models.catalog import Catalog
from models.embedder import Embedder
from serving.answer.types import Phases
from serving.deployments.base import ModelDeployment, deadline_in, encoder_options
from serving.settings import Settings


@serve.deployment(name="Embedder")
class EmbedderDeployment(ModelDeployment):
    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        chosen = settings.models.embedder
        self._embedder = Embedder(
            Catalog(settings.home).locate(chosen.model),
            **encoder_options(chosen, settings.deployments.embedder),
        )
        self._health = self._embedder.health
        await self._embedder.warm_up()

    async def embed(self, texts: list[str], *, timeout_s: float, query: bool = False) -> NDArray[np.float32]:
        return (await self.measured(texts, timeout_s=timeout_s, query=query))[0]

    async def measured(
        self, texts: list[str], *, timeout_s: float, query: bool = False
    ) -> tuple[NDArray[np.float32], Phases]:
        """The vectors, and where the time went."""
        self._count()
        vectors, phases = await self._embedder.measured(texts, deadline=deadline_in(timeout_s), query=query)
        self._measured(phases)
        return vectors, phases

    async def name(self) -> str:
        return self._embedder.name

    async def totals(self) -> Totals:
        """What all forward passes held since the replica started."""
        return self._embedder.totals

    async def __del__(self) -> None:
        self._embedder.close()
