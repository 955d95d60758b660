import asyncio
import time
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from serving.answer.errors import DeadlineExceededError, OverloadedError, UnavailableError
from serving.answer.seams import Retriever
from serving.answer.types import Deadline
from serving.retrieval.index import HybridIndex
from serving.retrieval.retriever import IndexRetriever

from .fakes import FakeEmbedder


def soon(seconds: float = 10.0) -> Deadline:
    return Deadline.after(seconds, time.monotonic)


async def never(texts: Sequence[str]) -> NDArray[np.float32]:
    raise AssertionError(f"the embedder was called with {texts}")


async def test_it_is_a_retriever(index: HybridIndex, embedder: FakeEmbedder) -> None:
    embedder.calls.clear()
    retriever: Retriever = IndexRetriever(lambda: index, embedder.embed)
    found = await retriever.hybrid("bread and cakes", 3, deadline=soon())
    assert found[0].title == "Bakery"
    assert embedder.calls == [["bread and cakes"]]
    assert await retriever.version() == index.generation


async def test_lexical_never_embeds(index: HybridIndex) -> None:
    found = await IndexRetriever(lambda: index, never).lexical("os.path.join", 3, deadline=soon())
    assert found[0].title == "os.path.join"
    assert found == index.lexical("os.path.join", 3)


async def test_a_deadline_that_passes_is_an_incident(index: HybridIndex, embedder: FakeEmbedder) -> None:
    async def slow(texts: Sequence[str]) -> NDArray[np.float32]:
        await asyncio.sleep(5)
        return embedder(texts)

    with pytest.raises(DeadlineExceededError):
        await IndexRetriever(lambda: index, slow).hybrid("bread", 3, deadline=soon(0.05))
    with pytest.raises(DeadlineExceededError):
        await IndexRetriever(lambda: index, never).lexical("bread", 3, deadline=soon(0.0))


async def test_a_cancelled_call_stays_cancelled(index: HybridIndex) -> None:
    async def slow(_texts: Sequence[str]) -> NDArray[np.float32]:
        await asyncio.sleep(5)
        raise AssertionError

    call = asyncio.ensure_future(IndexRetriever(lambda: index, slow).hybrid("bread", 3, deadline=soon()))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_broken_embedder_is_an_incident(index: HybridIndex) -> None:
    with pytest.raises(UnavailableError):
        await IndexRetriever(lambda: index, never).hybrid("bread", 3, deadline=soon())

    async def busy(_texts: Sequence[str]) -> NDArray[np.float32]:
        raise OverloadedError("later", retry_after_s=2.0)

    with pytest.raises(OverloadedError):
        await IndexRetriever(lambda: index, busy).hybrid("bread", 3, deadline=soon())


@pytest.mark.parametrize("shape", [(32,), (2, 32), (1, 31)])
async def test_vectors_of_a_wrong_shape_are_an_incident(index: HybridIndex, shape: tuple[int, ...]) -> None:
    async def wrong(_texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones(shape, dtype=np.float32)

    with pytest.raises(UnavailableError):
        await IndexRetriever(lambda: index, wrong).hybrid("bread", 3, deadline=soon())


def test_the_pool_holds_at_least_one(index: HybridIndex) -> None:
    with pytest.raises(ValueError, match="pool"):
        IndexRetriever(lambda: index, never, pool=0)
