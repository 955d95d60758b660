"""Models called on their own, on the running server, by the clients that people have."""

from __future__ import annotations

import httpx
import pytest

from serving.cli.up import Server
from tests.rerank_clients import DOCUMENTS, embed_with_openai, rerank_with_cohere

pytestmark = pytest.mark.cluster


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


def test_what_is_more_than_the_budget_is_refused_as_retryable(server: Server) -> None:
    documents = ["word " * 200] * 900
    refused = httpx.post(f"{server.url}/v1/rerank", json={"query": "word", "documents": documents}, timeout=120)
    assert refused.status_code == 429
    assert refused.json()["error"]["retryable"] is True
    assert "direct budget" in refused.json()["error"]["message"]
