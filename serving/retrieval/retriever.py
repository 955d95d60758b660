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
    """Implements :class:`serving.answer.seams.Retriever`. Index work runs in a thread, so the event loop stays free.

    ``current`` gives the index that answers now; a call keeps the one it began with. ``words`` and ``vectors`` say
    which halves ``hybrid`` asks; without ``vectors`` no query is embedded.
    """

    def __init__(
        self,
        current: Callable[[], HybridIndex],
        embed: Embed,
        pool: int = POOL,
        *,
        words: bool = True,
        vectors: bool = True,
    ) -> None:
        if pool < 1:
            raise ValueError(f"pool must be at least 1, got {pool}")
        if not (words or vectors):
            raise ValueError("retrieval needs words or vectors")
        self._current = current
        self._embed = embed
        self._pool = pool
        self._words = words
        self._vectors = vectors

    async def lexical(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        """BM25 alone; the embedder is not called. Raises ``DeadlineExceededError`` or ``UnavailableError``."""
        with _incidents():
            async with asyncio.timeout(deadline.remaining()):
                return await asyncio.to_thread(self._current().lexical, query, limit)

    async def hybrid(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        """BM25 and embeddings, fused, or the one half that is switched on. Raises as :meth:`lexical`."""
        if not self._vectors:
            return await self.lexical(query, limit, deadline=deadline)
        with _incidents():
            async with asyncio.timeout(deadline.remaining()):
                vectors = np.asarray(await self._embed([query]))
                if vectors.ndim != 2 or len(vectors) != 1:
                    raise UnavailableError(f"the embedder gave an array of shape {vectors.shape} for one query")
                index = self._current()
                return await asyncio.to_thread(index.hybrid, query, vectors[0], limit, self._pool, words=self._words)

    async def frequencies(self, words: Sequence[str], *, deadline: Deadline) -> Sequence[int]:
        """How many passages hold each word. Raises ``DeadlineExceededError`` or ``UnavailableError``."""
        with _incidents():
            async with asyncio.timeout(deadline.remaining()):
                return await asyncio.to_thread(self._current().frequencies, words)

    async def version(self) -> str:
        return self._current().version


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
