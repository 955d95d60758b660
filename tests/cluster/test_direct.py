"""Models called on their own, on the running server, by the clients that people have."""

from __future__ import annotations

import asyncio
import random

import httpx
import pytest
from ray import serve

from serving.cli.up import Server
from tests.rerank_clients import DOCUMENTS, embed_with_openai, rerank_with_cohere

pytestmark = pytest.mark.cluster

PASSES_UNTIL_HEARD = 5
"""The one under way, and what passes go by until the server has heard that a connection is closed: of twenty or so."""


def test_cohere_ranks_documents(server: Server) -> None:
    response = rerank_with_cohere(server.url)
    assert len(response.results) == 2
    assert response.results[0].index == 1
    assert response.results[0].relevance_score > response.results[1].relevance_score


def test_openai_embeds_texts(server: Server) -> None:
    response = embed_with_openai(server.url, [*DOCUMENTS, "word " * 2000])
    assert [len(item.embedding) for item in response.data] == [384] * 4
    assert sum(value * value for value in response.data[3].embedding) == pytest.approx(1.0, abs=1e-4)
    assert response.usage.total_tokens > 2000


def test_a_text_is_checked_and_the_time_is_told(server: Server) -> None:
    facts = [{"factText": DOCUMENTS[1]}, {"factText": "The tower is 330 metres tall."}]
    body = {"answerCandidate": "The tower is 330 metres tall. The tower is 320 metres tall.", "facts": facts}
    checked = httpx.post(f"{server.url}/v1/check", json=body, timeout=120)
    assert checked.status_code == 200, checked.text
    assert [claim["reason"] for claim in checked.json()["claims"]] == ["entailed", "number_mismatch"]
    assert checked.json()["citedChunks"] == [{"chunkText": facts[1]["factText"], "source": "1"}]
    ranked = httpx.post(f"{server.url}/v1/rerank", json={"query": "tower", "documents": DOCUMENTS}, timeout=120)
    assert float(ranked.headers["x-total-time"]) >= float(ranked.headers["x-compute-time"]) > 0
    assert int(ranked.headers["x-padded-tokens"]) >= int(ranked.headers["x-compute-tokens"]) > 10


async def test_what_waits_is_dropped_when_its_caller_hangs_up(server: Server) -> None:
    """Some passes go by until the server has heard of it; then the one under way is finished, and no other begun."""
    embedder = serve.get_deployment_handle("Embedder", "answer")
    rng = random.Random(3)
    texts = [" ".join(rng.choices(DOCUMENTS[1].split(), k=100)) for _ in range(400)]

    async def passes() -> int:
        return int((await embedder.totals.remote()).passes)

    before = await passes()
    async with httpx.AsyncClient(timeout=300) as client:
        asking = asyncio.create_task(client.post(f"{server.url}/v1/embeddings", json={"model": "x", "input": texts}))
        while await passes() < before + 2:  # noqa: ASYNC110 - another process counts
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    last, found = -1, await passes()
    while found != last:
        await asyncio.sleep(2.0)  # longer than any pass takes
        last, found = found, await passes()
    assert 2 <= found - before <= 2 + PASSES_UNTIL_HEARD, found - before


def test_what_is_more_than_the_budget_is_refused_as_retryable(server: Server) -> None:
    documents = ["word " * 200] * 900
    refused = httpx.post(f"{server.url}/v1/rerank", json={"query": "word", "documents": documents}, timeout=120)
    assert refused.status_code == 429
    assert refused.json()["error"]["retryable"] is True
    assert "direct budget" in refused.json()["error"]["message"]
