"""The Reranker deployment: a cross-encoder, or the embedder's cosine where none is configured."""

from __future__ import annotations

from ray import serve
from ray.serve.handle import DeploymentHandle

from models.catalog import Catalog
from models.reranker import CrossEncoderReranker, EmbeddingReranker
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
            from models.head_encoder import open_pairs

            catalog = Catalog(settings.home)
            folder = catalog.locate(str(chosen.model))
            options = encoder_options(chosen, settings.deployments.reranker)
            self._reranker = CrossEncoderReranker(
                open_pairs(folder, order="settled_first", head="reranker", base=catalog.base_of(folder), **options)
            )
        else:
            self._reranker = EmbeddingReranker(RemoteEmbedder(embedder), await embedder.name.remote())
        await self._reranker.score("warm-up", ["A text to score."], deadline=deadline_in(WARM_UP_S))

    async def score(self, query: str, documents: list[str], *, timeout_s: float) -> list[float]:
        self._count()
        return list(await self._reranker.score(query, documents, deadline=deadline_in(timeout_s)))

    async def name(self) -> str:
        return self._reranker.name
