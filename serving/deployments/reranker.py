"""The Reranker deployment: a cross-encoder, or the Embedder's cosine where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ray import serve
from ray.serve.handle import DeploymentHandle

from models.catalog import Catalog
from models.documents import LongDocument
from models.reranker import CrossEncoderReranker, EmbeddingReranker
from models.swapping import Swap
from serving.answer.types import Scored, Scores
from serving.deployments.base import WARM_UP_S, ReplaceableDeployment, deadline_in, encoder_name, encoder_options
from serving.deployments.handles import RemoteEmbedder
from serving.deployments.replacing import Part, Replaceable
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
        **encoder_options(chosen, settings.deployments.reranker),
    )
    return Named(
        CrossEncoderReranker(encoder), encoder_name(reference, folder, encoder.name), encoder.health, encoder.close
    )


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
            new = Named(EmbeddingReranker(RemoteEmbedder(self._embedder), name), name, lambda: None, lambda: None)
        else:
            new = await asyncio.to_thread(cross_encoder, self._settings, reference)
        if isinstance(new.reranker, CrossEncoderReranker):
            await new.reranker.warm_up()
        await new.reranker.score("warm-up", ["A text to score."], deadline=deadline_in(WARM_UP_S))
        return new

    async def score(self, query: str, documents: list[str], *, timeout_s: float) -> Scores:
        scored, name = await self._read(query, documents, timeout_s, None)
        return Scores((pair.score for pair in scored.pairs), name)

    async def read(
        self, query: str, documents: list[str], *, timeout_s: float, long_document: LongDocument | None = None
    ) -> Scored:
        """The scores, with what was read of each document and where the time went. ``long_document``: as set."""
        scored, _ = await self._read(query, documents, timeout_s, long_document)
        return scored

    async def _read(
        self, query: str, documents: list[str], timeout_s: float, long_document: LongDocument | None
    ) -> tuple[Scored, str]:
        self._count()
        deadline = deadline_in(timeout_s)
        async with self._current.use() as current:
            scored = await current.reranker.read(query, documents, deadline=deadline, long_document=long_document)
        self._measured(scored.phases)
        return scored, current.name

    async def check_health(self) -> None:
        self._current.current.health()

    async def name(self) -> str:
        return self._current.current.name
