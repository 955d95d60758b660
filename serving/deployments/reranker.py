"""The Reranker deployment: a cross-encoder, or the embedder's cosine where none is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ray import serve
from ray.serve.handle import DeploymentHandle

from models.catalog import Catalog
from models.reranker import CrossEncoderReranker, EmbeddingReranker
from models.swapping import Swap
from serving.answer.types import Scores
from serving.deployments.base import WARM_UP_S, ReplaceableDeployment, deadline_in, encoder_name, encoder_options
from serving.deployments.handles import RemoteEmbedder
from serving.deployments.replacing import Part, Replaceable
from serving.settings import Settings


class Named(NamedTuple):
    """A reranker, the name that answers carry for it, and what gives its memory back."""

    reranker: CrossEncoderReranker | EmbeddingReranker
    name: str
    close: Callable[[], None]


def cross_encoder(settings: Settings, reference: str) -> Named:
    """The cross-encoder whose weights ``reference`` names. Blocks. Raises :class:`~models.errors.ModelError`."""
    # The embedding reranker needs no torch here: it is loaded only for a cross-encoder.
    from models.encoder import PairEncoder

    folder = Catalog(settings.home).locate(reference)
    options = encoder_options(settings.models.reranker, settings.deployments.reranker)
    reranker = CrossEncoderReranker(PairEncoder(folder, order="settled_first", **options))
    return Named(reranker, encoder_name(reference, folder, reranker.name), reranker.close)


@serve.deployment(name="Reranker")
class RerankerDeployment(ReplaceableDeployment):
    """Its ``user_config``: ``model``, a reference to a cross-encoder, or null for the embedder's cosine."""

    async def __init__(self, settings: Settings, embedder: DeploymentHandle) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        self._settings = settings
        self._embedder = embedder
        chosen = settings.models.reranker
        model = chosen.model if chosen.kind == "cross_encoder" else None
        self._current = Swap(await self._ready(model))
        part = Part(model, self._current.current.name, model)
        self._replaceable = Replaceable({"model": part}, {"model": self._take})

    async def _take(self, reference: str | None) -> str:
        new = await self._ready(reference)
        await self._current.hand_over(new, lambda old: asyncio.to_thread(old.close))
        return new.name

    async def _ready(self, reference: str | None) -> Named:
        """The reranker, once it has answered."""
        if reference is None:
            name = await self._embedder.name.remote()
            new = Named(EmbeddingReranker(RemoteEmbedder(self._embedder), name), name, lambda: None)
        else:
            new = await asyncio.to_thread(cross_encoder, self._settings, reference)
        await new.reranker.score("warm-up", ["A text to score."], deadline=deadline_in(WARM_UP_S))
        return new

    async def score(self, query: str, documents: list[str], *, timeout_s: float) -> Scores:
        self._count()
        async with self._current.use() as current:
            scores = await current.reranker.score(query, documents, deadline=deadline_in(timeout_s))
            return Scores(scores, current.name)

    async def name(self) -> str:
        return self._current.current.name
