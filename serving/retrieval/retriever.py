"""The retriever of the embedded index: the seam that the engine calls, over :class:`HybridIndex` and an embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from serving.answer.errors import AnswerError, DeadlineExceededError, UnavailableError
from serving.answer.types import Deadline, Passage
from serving.retrieval.index import HybridIndex

Embed = Callable[[Sequence[str]], Awaitable[NDArray[np.float32]]]
"""Embeds n texts into an array of shape ``(n, dim)``."""

POOL = 100
"""Candidates that each half of the index brings to the fusion."""


class IndexRetriever:
    """Implements :class:`serving.answer.seams.Retriever`. Index work runs in a thread, so the event loop stays free."""

    def __init__(self, index: HybridIndex, embed: Embed, pool: int = POOL) -> None:
        if pool < 1:
            raise ValueError(f"pool must be at least 1, got {pool}")
        self._index = index
        self._embed = embed
        self._pool = pool

    async def lexical(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        """BM25 alone; the embedder is not called. Raises ``DeadlineExceededError`` or ``UnavailableError``."""
        with _incidents():
            async with asyncio.timeout(deadline.remaining()):
                return await asyncio.to_thread(self._index.lexical, query, limit)

    async def hybrid(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        """BM25 and embeddings, fused. Raises ``DeadlineExceededError`` or ``UnavailableError``."""
        with _incidents():
            async with asyncio.timeout(deadline.remaining()):
                vectors = np.asarray(await self._embed([query]))
                if vectors.ndim != 2 or len(vectors) != 1:
                    raise UnavailableError(f"the embedder gave an array of shape {vectors.shape} for one query")
                return await asyncio.to_thread(self._index.hybrid, query, vectors[0], limit, self._pool)

    async def frequencies(self, words: Sequence[str], *, deadline: Deadline) -> Sequence[int]:
        """How many passages hold each word. Raises ``DeadlineExceededError`` or ``UnavailableError``."""
        with _incidents():
            async with asyncio.timeout(deadline.remaining()):
                return await asyncio.to_thread(self._index.frequencies, words)

    async def version(self) -> str:
        return self._index.generation


@contextmanager
def _incidents() -> Iterator[None]:
    """Whatever goes wrong in here is an incident, and says so by its type."""
    try:
        yield
    except AnswerError:
        raise
    except TimeoutError as error:
        raise DeadlineExceededError("the deadline passed while passages were retrieved") from error
    except Exception as error:
        raise UnavailableError("retrieval failed") from error
