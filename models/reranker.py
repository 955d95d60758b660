"""The two rerankers: a cross-encoder, and the cosine of embeddings where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from models.documents import LongDocument
from serving.answer.types import Deadline, PairScore, Phases, Scored

if TYPE_CHECKING:
    from models.encoder import PairEncoder


class Embeds(Protocol):
    """What turns texts into unit vectors of shape (n, dim): an :class:`~models.embedder.Embedder`, here or remote."""

    async def measured(
        self, texts: Sequence[str], *, deadline: Deadline, query: bool = False
    ) -> tuple[NDArray[np.float32], Phases]:
        """The vectors, and where the time went."""
        ...


class CrossEncoderReranker:
    """The seam :class:`~serving.answer.seams.Reranker` over a pair encoder that reads the query first."""

    def __init__(self, encoder: PairEncoder) -> None:
        self._encoder = encoder
        self.name = encoder.name

    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
        return [pair.score for pair in (await self.read(query, documents, deadline=deadline)).pairs]

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
        return [pair.score for pair in (await self.read(query, documents, deadline=deadline)).pairs]

    async def read(
        self, query: str, documents: Sequence[str], *, deadline: Deadline, long_document: LongDocument | None = None
    ) -> Scored:
        """:meth:`score`, and the time it took. All of a document is read whatever its length: its vector is the mean
        of its pieces'.
        """
        del long_document
        if not documents:
            return Scored((), Phases())
        question, first = await self._embedder.measured([query], deadline=deadline, query=True)
        passages, then = await self._embedder.measured(documents, deadline=deadline)
        # Rounding may take the cosine of equal vectors past 1.
        scores = (passages @ question[0]).clip(0.0, 1.0)
        return Scored(tuple(PairScore(float(score)) for score in scores), first + then)
