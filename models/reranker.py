"""The two rerankers: a cross-encoder, and the cosine of embeddings where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from models.documents import LongDocument
from serving.answer.types import Deadline, Scored

if TYPE_CHECKING:
    from models.encoder import PairEncoder


class Embeds(Protocol):
    """What turns texts into unit vectors of shape (n, dim): an :class:`~models.embedder.Embedder`, here or remote."""

    async def embed(self, texts: Sequence[str], *, deadline: Deadline, query: bool = False) -> NDArray[np.float32]: ...


class CrossEncoderReranker:
    """The seam :class:`~serving.answer.seams.Reranker` over a pair encoder that reads the query first."""

    def __init__(self, encoder: PairEncoder) -> None:
        self._encoder = encoder
        self.name = encoder.name

    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
        return await self._encoder.score([(document, query) for document in documents], deadline=deadline)

    async def read(
        self, query: str, documents: Sequence[str], *, deadline: Deadline, long_document: LongDocument | None = None
    ) -> Scored:
        """:meth:`score` with what was read of each document, and the time it took."""
        pairs = [(document, query) for document in documents]
        return await self._encoder.read(pairs, deadline=deadline, long_document=long_document)

    async def warm_up(self) -> None:
        await self._encoder.warm_up()

    def close(self) -> None:
        self._encoder.close()


class EmbeddingReranker:
    """The seam :class:`~serving.answer.seams.Reranker` by the cosine of embeddings; a negative cosine scores 0.

    ``name`` is the embedder's. Needs no torch of its own when the embedder is remote.
    """

    def __init__(self, embedder: Embeds, name: str) -> None:
        self._embedder = embedder
        self.name = name

    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
        if not documents:
            return []
        question = await self._embedder.embed([query], deadline=deadline, query=True)
        passages = await self._embedder.embed(documents, deadline=deadline)
        # Rounding may take the cosine of equal vectors past 1.
        return [float(score) for score in (passages @ question[0]).clip(0.0, 1.0)]
