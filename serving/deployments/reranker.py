"""The Reranker deployment: a cross-encoder, or the Embedder's cosine where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ray import serve
from ray.serve.handle import DeploymentHandle

from models.catalog import Catalog
from models.documents import LongDocument
from models.reranker import CrossEncoderReranker, EmbeddingReranker
from serving.answer.types import Scored, Scores
from serving.deployments.base import WARM_UP_S, EncoderDeployment, deadline_in, encoder_name, pair_options
from serving.deployments.handles import RemoteEmbedder
from serving.settings import Settings


class Named(NamedTuple):
    """A reranker, the name that answers carry for it, what raises when it is not healthy, what gives back memory."""

    reranker: CrossEncoderReranker | EmbeddingReranker
    name: str
    health: Callable[[], None]
    close: Callable[[], None]


def cross_encoder(settings: Settings, reference: str) -> Named:
    """The cross-encoder whose weights ``reference`` names. Blocks. Raises :class:`~models.errors.ModelError`."""
    # The embedding reranker needs no torch here: it is loaded only for a cross-encoder.
    from models.head_encoder import open_pairs

    chosen = settings.models.reranker
    catalog = Catalog(settings.home)
    folder = catalog.locate(reference)
    encoder = open_pairs(
        folder,
        order="settled_first",
        head="reranker",
        base=catalog.base_of(folder),
        long_document=chosen.long_document,
        **pair_options(settings, chosen, settings.deployments.reranker),
    )
    return Named(
        CrossEncoderReranker(encoder), encoder_name(reference, folder, encoder.name), encoder.health, encoder.close
    )


@serve.deployment(name="Reranker")
class RerankerDeployment(EncoderDeployment[Named]):
    """Without a reference to a cross-encoder it scores with the embedder's cosine."""

    async def __init__(self, settings: Settings, embedder: DeploymentHandle) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        self._settings = settings
        self._embedder = embedder
        chosen = settings.models.reranker
        await self._begin(chosen.model if chosen.kind == "cross_encoder" else None)

    async def _ready(self, reference: str | None) -> Named:
        """The reranker, once it has answered."""
        if reference is None:
            name = await self._embedder.name.remote()
            new = Named(EmbeddingReranker(RemoteEmbedder(self._embedder), name), name, lambda: None, lambda: None)
        else:
            new = await asyncio.to_thread(cross_encoder, self._settings, reference)
        if isinstance(new.reranker, CrossEncoderReranker):
            await new.reranker.warm_up()
        await new.reranker.score("warm-up", ["A text to score."], deadline=deadline_in(WARM_UP_S))
        return new

    async def score(self, query: str, documents: list[str], *, timeout_s: float) -> Scores:
        scored = await self.read(query, documents, timeout_s=timeout_s)
        return Scores((pair.score for pair in scored.pairs), scored.version)

    async def read(
        self, query: str, documents: list[str], *, timeout_s: float, long_document: LongDocument | None = None
    ) -> Scored:
        """The scores, with what was read of each document and where the time went. ``long_document``: as set."""
        self._count()
        deadline = deadline_in(timeout_s)
        async with self._current.use() as current:
            scored = await current.reranker.read(query, documents, deadline=deadline, long_document=long_document)
        self._measured(scored.phases)
        return replace(scored, version=current.name)
