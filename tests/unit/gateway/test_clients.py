"""Real clients of other APIs over a real socket, in front of a scripted backend."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import cohere
import openai
import pytest
import uvicorn

from serving.answer.errors import InvalidRequestError, OverloadedError
from tests.rerank_clients import DOCUMENTS, embed_with_openai, rerank_with_cohere

from .fakes import FakeBackend
from .test_http import api_over


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def url(backend: FakeBackend) -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(api_over(backend), log_config=None, lifespan="off"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def test_cohere_ranks_documents(url: str, backend: FakeBackend) -> None:
    response = rerank_with_cohere(url)
    assert [result.index for result in response.results] == [1, 0]
    assert response.results[0].relevance_score == pytest.approx(1 - 1 / (1 + len(DOCUMENTS[1])))
    assert response.id
    assert response.meta is not None
    assert response.meta.api_version is not None
    assert response.meta.api_version.version == "2"
    assert response.meta.tokens is not None
    assert response.meta.tokens.input_tokens == 90
    [(_, query, documents, _, tenant, _)] = backend.direct
    assert (query, documents) == ("How do I chain iterables?", DOCUMENTS)
    assert tenant


def test_openai_embeds_texts(url: str, backend: FakeBackend) -> None:
    response = embed_with_openai(url, ["a", "b"])
    assert [item.index for item in response.data] == [0, 1]
    assert response.data[1].embedding == pytest.approx([0.6, 0.8])
    assert (response.model, response.usage.total_tokens) == ("fake@1", 90)


def test_their_errors_are_what_they_mean(url: str, backend: FakeBackend) -> None:
    backend.error = OverloadedError("the direct budget is spent", retry_after_s=1.0)
    with pytest.raises(openai.RateLimitError) as caught:
        embed_with_openai(url, ["a"])
    assert caught.value.response.headers["retry-after"] == "1"
    backend.error = InvalidRequestError("no")
    with pytest.raises(cohere.UnprocessableEntityError):
        rerank_with_cohere(url)
