"""The seams over Serve handles: what a deployment uses of another looks to the engine like a local part.

Deadlines cross as seconds that remain, since clocks differ between machines. Errors come back typed: ours as they were
raised, Ray's as the incident they mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError
from ray.serve.exceptions import BackPressureError, RayServeException
from ray.serve.handle import DeploymentHandle, DeploymentResponseGenerator

from serving.answer.errors import AnswerError, DeadlineExceededError, OverloadedError, UnavailableError
from serving.answer.seams import Generation, Pair
from serving.answer.types import Deadline, Delta, Passage, Phases, Scored, Verdict

T = TypeVar("T")


def translate(error: BaseException, part: str) -> BaseException:
    """The typed error for what a call to ``part`` raised."""
    while isinstance(error, RayTaskError) and isinstance(error.cause, AnswerError | RayError | RayServeException):
        error = error.cause  # one for each process that it came through
    if isinstance(error, AnswerError):
        return error
    if isinstance(error, BackPressureError):
        return OverloadedError(f"the {part} has too much waiting; come back later", retry_after_s=1.0)
    if isinstance(error, TaskCancelledError):
        return asyncio.CancelledError()
    if isinstance(error, RayError | RayServeException):
        return UnavailableError(f"the {part} is not available")
    return error


async def call(awaitable: Awaitable[T], part: str, deadline: Deadline) -> T:
    """Awaits a handle's response until the deadline, with typed errors. The call is cancelled when time is up."""
    try:
        return await asyncio.wait_for(awaitable, deadline.remaining())
    except RayError as error:
        raise translate(error, part) from error  # also what is a ``TimeoutError`` over there: not our deadline
    except TimeoutError as error:
        raise DeadlineExceededError(f"the deadline passed while waiting for the {part}") from error
    except Exception as error:
        raise translate(error, part) from error


async def stream(
    response: DeploymentResponseGenerator, part: str, deadline: Deadline | None = None
) -> AsyncGenerator[Any, None]:
    """What a streaming response yields until the deadline, with typed errors. Left before its end, it is cancelled."""
    ended = False
    try:
        while True:
            try:
                async with asyncio.timeout(None if deadline is None else deadline.remaining()):
                    item = await anext(response)
            except StopAsyncIteration:
                ended = True
                return
            yield item
    except RayError as error:
        raise translate(error, part) from error  # also what is a ``TimeoutError`` over there: not our deadline
    except TimeoutError as error:
        raise DeadlineExceededError(f"the deadline passed while waiting for the {part}") from error
    except Exception as error:
        raise translate(error, part) from error
    finally:
        if not ended:
            response.cancel()


class RemoteRetriever:
    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle

    async def lexical(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        response = self._handle.lexical.remote(query, limit, timeout_s=deadline.remaining())
        return await call(response, "retriever", deadline)

    async def hybrid(self, query: str, limit: int, *, deadline: Deadline) -> Sequence[Passage]:
        response = self._handle.hybrid.remote(query, limit, timeout_s=deadline.remaining())
        return await call(response, "retriever", deadline)

    async def frequencies(self, words: Sequence[str], *, deadline: Deadline) -> Sequence[int]:
        response = self._handle.frequencies.remote(list(words), timeout_s=deadline.remaining())
        return await call(response, "retriever", deadline)

    async def version(self) -> str:
        try:
            version: str = await self._handle.version.remote()
        except Exception as error:
            raise translate(error, "retriever") from error
        return version


class RemoteEmbedder:
    """Embeds over a handle: texts in, an array of shape (n, dim) out."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle

    async def embed(self, texts: Sequence[str], *, deadline: Deadline, query: bool = False) -> NDArray[np.float32]:
        response = self._handle.embed.remote(list(texts), timeout_s=deadline.remaining(), query=query)
        return await call(response, "embedder", deadline)

    async def measured(
        self, texts: Sequence[str], *, deadline: Deadline, query: bool = False
    ) -> tuple[NDArray[np.float32], Phases]:
        response = self._handle.measured.remote(list(texts), timeout_s=deadline.remaining(), query=query)
        return await call(response, "embedder", deadline)


class RemoteReranker:
    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle

    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> Sequence[float]:
        response = self._handle.score.remote(query, list(documents), timeout_s=deadline.remaining())
        return await call(response, "reranker", deadline)

    async def read(
        self, query: str, documents: Sequence[str], *, deadline: Deadline, long_document: str | None = None
    ) -> Scored:
        response = self._handle.read.remote(
            query, list(documents), timeout_s=deadline.remaining(), long_document=long_document
        )
        return await call(response, "reranker", deadline)


class RemoteVerifier:
    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> Sequence[Verdict]:
        response = self._handle.verify.remote(list(pairs), timeout_s=deadline.remaining())
        return await call(response, "verifier", deadline)

    async def read(self, pairs: Sequence[Pair], *, deadline: Deadline) -> tuple[list[Verdict], Scored]:
        response = self._handle.read.remote(list(pairs), timeout_s=deadline.remaining())
        return await call(response, "verifier", deadline)


class RemoteRelevance:
    """Scores (statement, question) pairs with the judge in the Verifier deployment, for
    :class:`~serving.answer.relevance.ScoredRelevance`.
    """

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle

    async def __call__(self, pairs: Sequence[tuple[str, str]], *, deadline: Deadline) -> Sequence[float]:
        response = self._handle.relevance.remote(list(pairs), timeout_s=deadline.remaining())
        return await call(response, "verifier", deadline)


class RemoteSynthesizer:
    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle.options(stream=True)

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        response = self._handle.generate.remote(request, timeout_s=deadline.remaining())
        # The Synthesizer keeps the deadline: its last delta says so.
        async with aclosing(stream(response, "synthesizer")) as deltas:
            async for delta in deltas:
                yield delta
