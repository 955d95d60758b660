"""Rerank, check and embeddings over a scripted backend: the shapes that other APIs' clients read, and who pays."""

from __future__ import annotations

import base64
import struct
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from serving.answer.direct import CheckedClaim, CheckedText
from serving.answer.errors import OverloadedError, UnavailableError
from serving.answer.types import Phases, Reason, Span

from .fakes import PASSAGE, FakeBackend
from .test_http import DEFAULT_TIMEOUT_S, api_over, client_of, error_of

DOCUMENTS = ["one", "one two three", "one two", "one", "one two three four"]
RERANK = {"query": "one?", "documents": DOCUMENTS}
CHECK = {
    "answerCandidate": "Très vite: make one iterator of many iterables. Make 7 iterators.\nIs it?",
    "facts": [{"factText": "Très vite."}, {"factText": PASSAGE.text, "attributes": {"title": "chain"}}],
}
EMBED = {"input": ["a", "b"]}
CALLS = {"/v1/rerank": RERANK, "/v2/rerank": RERANK, "/rerank": RERANK, "/v1/check": CHECK, "/v1/embeddings": EMBED}


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
async def client(backend: FakeBackend) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(api_over(backend)) as client:
        yield client


async def ok(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return dict(response.json())


# Rerank


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
async def test_documents_come_best_first_and_the_earlier_one_on_a_tie(client: httpx.AsyncClient, path: str) -> None:
    body = await ok(client, path, RERANK)
    assert [result["index"] for result in body["results"]] == [4, 1, 2, 0, 3]
    assert body["results"][0] == {
        "index": 4,
        "relevance_score": pytest.approx(18 / 19),
        "document": None,
        "chunks": 1,
        "best_chunk": 0,
        "truncated": True,
    }
    assert (body["object"], body["model"]) == ("list", "fake@1")
    assert body["usage"] == {"prompt_tokens": 90, "total_tokens": 90}
    assert body["meta"]["warnings"] == ["1 of 5 documents were cut to what the model reads"]


async def test_what_other_apis_clients_send_is_taken(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    more = {"model": "rerank-v3.5", "max_tokens_per_doc": 4096, "priority": 1, "user": "u", "return_documents": True}
    body = await ok(client, "/v2/rerank", {"query": "q", "documents": [{"text": "ab"}, "abc"], "top_n": 1, **more})
    assert [result["document"] for result in body["results"]] == [{"text": "abc"}]
    assert body["meta"]["warnings"] == []
    await ok(client, "/v1/rerank", {**RERANK, "top_n": 0, "long_document": "error"})
    assert backend.direct[1] == ("rerank", "one?", DOCUMENTS, DEFAULT_TIMEOUT_S, "", "error")


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": "  "},
        {"query": 3},
        {"documents": []},
        {"documents": [{"text": "a", "more": 1}]},
        {"documents": ["a"] * 1001},
        {"top_n": -1},
        {"long_document": "cut"},
        {"raw_scores": True},
    ],
)
async def test_a_rerank_that_makes_no_sense_is_refused(client: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    error_of(await client.post("/v1/rerank", json={**RERANK, **wrong}), 422, "invalid_request")


# Check


async def test_a_text_is_checked_sentence_by_sentence(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    body = await ok(client, "/v1/check", CHECK)
    text = CHECK["answerCandidate"].encode()  # type: ignore[attr-defined]
    first, second, third = body["claims"]
    assert text[first["startPos"] : first["endPos"]].decode() == first["claimText"]
    assert first["claimText"].startswith("Très vite: make")
    assert (second["reason"], second["words"], second["citationIndices"]) == ("number_mismatch", ["7"], [])
    assert (third["groundingCheckRequired"], third["reason"]) == (False, "not_a_claim")
    assert body["claims"][0]["reason"] == "entailed"
    assert [body["citedChunks"][place]["source"] for place in first["citationIndices"]] == ["0", "1"]
    assert body["supportScore"] == 0.5
    assert body["meta"]["truncated"] is False
    assert [fact.title for fact in backend.direct[0][2]] == ["", "chain"]


async def test_a_contradiction_is_told_where_the_verifier_tells_it(
    client: httpx.AsyncClient, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {claim["contradictionScore"] for claim in (await ok(client, "/v1/check", CHECK))["claims"]} == {None}
    told = CheckedText(
        (CheckedClaim("It is.", Span(0, 6), Reason.NOT_ENTAILED, 0.1, contradiction=0.75),),
        *(1, 1, False, Phases(), "nli@1"),
    )

    async def check(*_: object, **__: object) -> CheckedText:
        return told

    monkeypatch.setattr(backend, "check", check)
    assert [claim["contradictionScore"] for claim in (await ok(client, "/v1/check", CHECK))["claims"]] == [0.75]


async def test_the_threshold_is_the_callers(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    await ok(client, "/v1/check", {**CHECK, "groundingSpec": {"citationThreshold": 0.8}})
    await ok(client, "/v1/check", {**CHECK, "facts": []})
    assert [asked[-1] for asked in backend.direct] == [0.8, None]


@pytest.mark.parametrize(
    "wrong",
    [
        {"answerCandidate": "\n "},
        {"facts": [{"text": "a"}]},
        {"facts": [{"factText": "a"}] * 201},
        {"groundingSpec": {"citationThreshold": 1.5}},
        {"answer_candidate": "a"},
    ],
)
async def test_a_check_that_makes_no_sense_is_refused(client: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    error_of(await client.post("/v1/check", json={**CHECK, **wrong}), 422, "invalid_request")


# Embeddings


async def test_vectors_come_in_order_as_floats_or_as_base64(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    body = await ok(client, "/v1/embeddings", {**EMBED, "model": "text-embedding-3-small", "dimensions": 2})
    assert [item["index"] for item in body["data"]] == [0, 1]
    assert body["data"][0]["embedding"] == pytest.approx([0.6, 0.8])
    assert body["usage"] == {"prompt_tokens": 90, "total_tokens": 90}
    packed = await ok(client, "/v1/embeddings", {"input": "a", "encoding_format": "base64", "input_type": "query"})
    assert struct.unpack("<2f", base64.b64decode(packed["data"][0]["embedding"])) == pytest.approx((0.6, 0.8))
    assert [asked[1:] for asked in backend.direct] == [
        (["a", "b"], DEFAULT_TIMEOUT_S, "", False),
        (["a"], DEFAULT_TIMEOUT_S, "", True),
    ]


@pytest.mark.parametrize(
    "wrong", [{"input": []}, {"input": ""}, {"input": [[1, 2]]}, {"dimensions": 3}, {"encoding_format": "int8"}]
)
async def test_embeddings_that_make_no_sense_are_refused(client: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    error_of(await client.post("/v1/embeddings", json={**EMBED, **wrong}), 422, "invalid_request")


# All of them


@pytest.mark.parametrize("path", CALLS)
async def test_the_time_it_took_is_in_the_headers(client: httpx.AsyncClient, backend: FakeBackend, path: str) -> None:
    response = await client.post(path, json=CALLS[path], headers={"x-request-timeout-seconds": "7"})
    told = {name: value for name, value in response.headers.items() if name.endswith(("-time", "-tokens"))}
    assert told == {
        "x-tokenise-time": "1.2",
        "x-queue-time": "250.0",
        "x-compute-time": "30.0",
        "x-total-time": "281.2",
        "x-compute-tokens": "90",
        "x-padded-tokens": "96",
    }
    assert 7.0 in backend.direct[0]
    backend.phases = Phases()
    assert "x-total-time" not in (await client.post(path, json=CALLS[path])).headers


@pytest.mark.parametrize("path", CALLS)
async def test_being_overloaded_stays_retryable_and_says_when(
    client: httpx.AsyncClient, backend: FakeBackend, path: str
) -> None:
    backend.error = OverloadedError("the direct budget is spent", retry_after_s=2.3)
    response = await client.post(path, json=CALLS[path])
    error_of(response, 429, "overloaded", retryable=True)
    assert response.headers["retry-after"] == "3"
    backend.error = UnavailableError("the reranker is not available")
    error_of(await client.post(path, json=CALLS[path]), 503, "unavailable", retryable=True)


async def test_a_call_is_its_tenants(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    for headers in (
        {"x-tenant": " shop "},
        {"authorization": "Bearer secret"},
        {"authorization": "bearer secret"},
        {"authorization": "Bearer other"},
        {"authorization": "Basic secret"},
        {"x-tenant": "x" * 500},
        {},
    ):
        await client.post("/v1/embeddings", json=EMBED, headers=headers)
    named, first, again, other, basic, long, nobody = (asked[3] for asked in backend.direct)
    assert named == "shop"
    assert first == again != other
    assert "secret" not in first
    assert basic == nobody == ""
    assert len(long) == 128
