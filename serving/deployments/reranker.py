"""The Reranker deployment: a cross-encoder, or the embedder's cosine where none is configured."""

from __future__ import annotations

from ray import serve
from ray.serve.handle import DeploymentHandle

from models.catalog import Catalog
from models.documents import LongDocument
from models.reranker import CrossEncoderReranker, EmbeddingReranker
from serving.answer.types import Scored
from serving.deployments.base import WARM_UP_S, ModelDeployment, deadline_in, encoder_options
from serving.deployments.handles import RemoteEmbedder
from serving.settings import Settings


@serve.deployment(name="Reranker")
class RerankerDeployment(ModelDeployment):
    async def __init__(self, settings: Settings, embedder: DeploymentHandle) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        chosen = settings.models.reranker
        self._reranker: CrossEncoderReranker | EmbeddingReranker
        if chosen.kind == "cross_encoder":
            # The embedding reranker needs no torch here: it is loaded only for a cross-encoder.
            from models.encoder import PairEncoder

            folder = Catalog(settings.home).locate(str(chosen.model))
            options = encoder_options(chosen, settings.deployments.reranker)
            encoder = PairEncoder(folder, order="settled_first", long_document=chosen.long_document, **options)
            self._reranker, self._health = CrossEncoderReranker(encoder), encoder.health
            await encoder.warm_up()
        else:
            self._reranker = EmbeddingReranker(RemoteEmbedder(embedder), await embedder.name.remote())
        await self._reranker.score("warm-up", ["A text to score."], deadline=deadline_in(WARM_UP_S))

    async def score(self, query: str, documents: list[str], *, timeout_s: float) -> list[float]:
        return [pair.score for pair in (await self.read(query, documents, timeout_s=timeout_s)).pairs]

    async def read(
        self, query: str, documents: list[str], *, timeout_s: float, long_document: LongDocument | None = None
    ) -> Scored:
        """The scores, with what was read of each document and where the time went. ``long_document``: as set."""
        self._count()
        deadline = deadline_in(timeout_s)
        scored = await self._reranker.read(query, documents, deadline=deadline, long_document=long_document)
        self._measured(scored.phases)
        return scored

    async def name(self) -> str:
        return self._reranker.name
