"""The HTTP API over a scripted backend, in process: shapes, statuses, and nothing internal in an error."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.middleware.base import BaseHTTPMiddleware

from serving.answer.errors import (
    AnswerError,
    DeadlineExceededError,
    IndexMissingError,
    InvalidQuestionError,
    OverloadedError,
    SpanOutOfRangeError,
    UnavailableError,
)
from serving.answer.wire import Answer
from serving.gateway.errors import MAX_MESSAGE_CHARS
from serving.gateway.http import create_api

from .fakes import FakeBackend, declined

MAX_BODY = 200_000
DEFAULT_TIMEOUT_S = 42.0
QUESTION = {"question": "What does chain do?"}


def api_over(backend: FakeBackend) -> FastAPI:
    return create_api(backend, default_timeout_s=DEFAULT_TIMEOUT_S, max_body_bytes=MAX_BODY, max_question_chars=2_000)


def client_of(api: FastAPI) -> httpx.AsyncClient:
    # As over a real server: what the app raises after it has answered is for its logs.
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
async def client(backend: FakeBackend) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(api_over(backend)) as client:
        yield client


def error_of(response: httpx.Response, status: int, code: str, *, retryable: bool = False) -> str:
    """The message of an error response, once everything else about it is right."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == {"code", "message", "request_id", "retryable"}
    assert (error["code"], error["retryable"]) == (code, retryable)
    assert error["request_id"] == response.headers["x-request-id"] != ""
    return str(error["message"])


# What succeeds


async def test_an_answer_has_every_key_of_the_contract(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/answer", json=QUESTION)
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {
        *("request_id", "outcome", "text", "marked_text", "verified", "truncated", "claims", "grounding", "dropped"),
        *("decline", "route", "passages", "usage", "timings_ms", "versions"),
    }
    assert body["decline"] is None
    assert set(body["claims"][0]) == {"text", "span", "citations", "reason"}
    assert set(body["claims"][0]["span"]) == {"utf8", "code_point", "utf16"}
    assert set(body["grounding"]) == {"groundingChunks", "groundingSupports"}
    assert body["grounding"]["groundingChunks"] == [
        {"web": {"uri": "https://docs.example/itertools", "title": "itertools.chain"}}
    ]
    assert set(body["passages"][0]) == {
        *("id", "title", "url", "source", "heading_path", "source_path", "repo_path", "commit_sha", "published_at"),
        *("text", "score"),
    }
    assert set(body["usage"]) == {"prompt_tokens", "completion_tokens", "verified_pairs"}
    assert set(body["timings_ms"]) == {"route", "retrieve", "rerank", "synthesize", "verify", "total"}
    assert set(body["versions"]) == {
        *("settings", "prompt", "synthesizer", "reranker", "verifier", "router", "index"),
    }
    assert Answer.model_validate_json(response.content).text == body["text"]


async def test_a_decline_is_no_error(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    backend.answer_is = declined()
    response = await client.post("/v1/answer", json=QUESTION)
    assert response.status_code == 200
    assert response.json()["decline"] == {
        "reason": "not_in_passages",
        "cause": None,
        "message": "The passages do not answer this.",
    }


async def test_the_callers_request_id_is_kept(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    response = await client.post("/v1/answer", json=QUESTION, headers={"x-request-id": "mine-7"})
    assert response.headers.get_list("x-request-id") == ["mine-7"]
    assert response.json()["request_id"] == "mine-7"
    assert backend.asked[0][1] == "mine-7"


async def test_each_request_without_an_id_gets_its_own(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    responses = [await client.post("/v1/answer", json=QUESTION) for _ in range(2)]
    ids = [response.headers["x-request-id"] for response in responses]
    assert ids == [asked[1] for asked in backend.asked] == [response.json()["request_id"] for response in responses]
    assert len(set(ids)) == 2
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in ids)


@pytest.mark.parametrize("given_id", ["", "two words", "x" * 129, "caf\xe9", "a\x1b[31m"])
async def test_an_id_that_is_no_plain_token_is_replaced(client: httpx.AsyncClient, given_id: str) -> None:
    response = await client.get("/nowhere", headers={"x-request-id": given_id.encode("latin-1")})  # type: ignore[dict-item]
    error_of(response, 404, "not_found")
    assert re.fullmatch(r"[0-9a-f]{32}", response.headers["x-request-id"])


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        ({}, {}, DEFAULT_TIMEOUT_S),
        ({"timeout_s": None}, {}, DEFAULT_TIMEOUT_S),
        ({}, {"x-request-timeout-seconds": "7.5"}, 7.5),
        ({"timeout_s": 3}, {}, 3.0),
        ({"timeout_s": 3}, {"x-request-timeout-seconds": "7.5"}, 3.0),
    ],
)
async def test_the_deadline_is_the_bodys_or_the_headers_or_the_default(
    client: httpx.AsyncClient, backend: FakeBackend, body: dict[str, Any], header: dict[str, str], expected: float
) -> None:
    assert (await client.post("/v1/answer", json={**QUESTION, **body}, headers=header)).status_code == 200
    assert backend.asked[0][2] == expected


async def test_search_gives_passages(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    response = await client.post("/v1/search", json={"query": "chain", "limit": 3})
    assert response.status_code == 200
    assert [passage["id"] for passage in response.json()["passages"]] == ["p1"]
    await client.post("/v1/search", json={"query": "chain"})
    assert backend.searched == [("chain", 3, DEFAULT_TIMEOUT_S), ("chain", 10, DEFAULT_TIMEOUT_S)]


async def test_a_query_is_refused_and_never_cut(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    assert (await client.post("/v1/search", json={"query": "x" * 2_000})).status_code == 200
    message = error_of(await client.post("/v1/search", json={"query": "x" * 2_001}), 422, "invalid_question")
    assert "2001" in message
    assert "2000" in message
    assert len(backend.searched) == 1


async def test_health_needs_no_backend(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    backend.error = UnavailableError("down")
    response = await client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("models", "status"),
    [({"a": True, "b": True}, 200), ({"a": True, "b": False}, 503), ({"a": False}, 503), ({}, 503)],
)
async def test_ready_means_every_model(
    client: httpx.AsyncClient, backend: FakeBackend, models: dict[str, bool], status: int
) -> None:
    backend.models = models
    response = await client.get("/readyz")
    assert response.status_code == status
    assert response.json() == {"ready": status == 200, "models": models}


# What the caller got wrong


@pytest.mark.parametrize("path", ["/v1/answer", "/v1/search"])
@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"question=x", b"\xff\xfe", b'{"question": "x"', b'{"question": NOPE}', b"[" * 100_000, b"9" * 5_000],
)
async def test_what_is_no_json(client: httpx.AsyncClient, path: str, content: bytes) -> None:
    response = await client.post(path, content=content, headers={"content-type": "application/json"})
    if content:
        error_of(response, 400, "malformed_json")
    else:
        error_of(response, 422, "invalid_request")


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/v1/answer", {**QUESTION, "quesiton": 1}, "quesiton"),
        ("/v1/answer", {}, "question"),
        ("/v1/answer", {"question": 5}, "question"),
        ("/v1/answer", {"question": None}, "question"),
        ("/v1/answer", {**QUESTION, "timeout_s": 0}, "timeout_s"),
        ("/v1/answer", {**QUESTION, "timeout_s": 601}, "timeout_s"),
        ("/v1/answer", {**QUESTION, "timeout_s": "soon"}, "timeout_s"),
        ("/v1/answer", ["question"], "body"),
        ("/v1/answer", "question", "body"),
        ("/v1/search", {"query": ""}, "query"),
        ("/v1/search", {"query": "x", "limit": 0}, "limit"),
        ("/v1/search", {"query": "x", "limit": 101}, "limit"),
        ("/v1/search", {"query": "x", "limit": 1.5}, "limit"),
        ("/v1/search", {"query": "x", "k": 3}, "k"),
    ],
)
async def test_a_fault_in_a_field_names_it(client: httpx.AsyncClient, path: str, body: Any, named: str) -> None:
    message = error_of(await client.post(path, json=body), 422, "invalid_request")
    assert message.startswith(f"{named}: ")


@pytest.mark.parametrize("value", ["0", "-1", "601", "nan", "inf", "soon"])
async def test_a_deadline_in_the_header_is_checked(client: httpx.AsyncClient, value: str) -> None:
    headers = {"x-request-timeout-seconds": value}
    message = error_of(await client.post("/v1/answer", json=QUESTION, headers=headers), 422, "invalid_request")
    assert message.startswith("x-request-timeout-seconds: ")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400])
async def test_numbers_that_are_too_large(client: httpx.AsyncClient, number: str) -> None:
    content = f'{{"question": "x", "timeout_s": {number}}}'.encode()
    response = await client.post("/v1/answer", content=content, headers={"content-type": "application/json"})
    error_of(response, 422, "invalid_request")


@pytest.mark.parametrize(
    "kind", [b"text/plain", b"application/x-www-form-urlencoded", b"application/xml", b"", b"\xff"]
)
async def test_a_body_of_another_kind_says_what_to_send(client: httpx.AsyncClient, kind: bytes) -> None:
    response = await client.post("/v1/answer", content=json.dumps(QUESTION).encode(), headers={"content-type": kind})  # type: ignore[dict-item]
    assert "content-type: application/json" in error_of(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
async def test_json_by_whatever_spelling(client: httpx.AsyncClient, kind: str) -> None:
    body = json.dumps(QUESTION).encode()
    assert (await client.post("/v1/answer", content=body, headers={"content-type": kind})).status_code == 200


async def test_an_unknown_path(client: httpx.AsyncClient) -> None:
    for path in ("/v2/answer", "/v1/answer/", "/v1"):
        assert path in error_of(await client.get(path), 404, "not_found")


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT", "DELETE", "TRACE", "PATCH", "BREW"])
async def test_another_method(client: httpx.AsyncClient, method: str) -> None:
    response = await client.request(method, "/v1/answer")
    assert error_of(response, 405, "method_not_allowed") == f"/v1/answer does not take {method}; it takes POST"
    assert response.headers["allow"] == "POST"


async def test_head_is_no_method_here(client: httpx.AsyncClient) -> None:
    response = await client.head("/healthz")
    assert (response.status_code, response.headers["allow"]) == (405, "GET")


async def test_all_methods_of_a_path_are_named(backend: FakeBackend) -> None:
    api = api_over(backend)
    api.add_api_route("/v1/answer", lambda: None, methods=["DELETE"])
    async with client_of(api) as client:
        assert (await client.get("/v1/answer")).headers["allow"] == "DELETE, POST"


def in_pieces(size: int, piece: int = 1_000) -> Callable[[], AsyncIterator[bytes]]:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, size, piece):
            yield b" " * min(piece, size - at)

    return pieces


async def test_a_declared_length_over_the_limit_is_refused_unread(backend: FakeBackend) -> None:
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(10):
            sent += 1
            yield b" "

    async with client_of(api_over(backend)) as client:
        headers = {"content-length": str(MAX_BODY + 1)}
        response = await client.post("/v1/answer", content=pieces(), headers=headers)
    assert str(MAX_BODY) in error_of(response, 413, "body_too_large")
    assert (sent, backend.asked) == (0, [])


@pytest.mark.parametrize("length", ["-5", "\xb2", "five", "", "5, 5", "+5", " 5", "1_0"])
@pytest.mark.parametrize("path", ["/v1/answer", "/healthz"])
async def test_a_length_that_is_none(client: httpx.AsyncClient, backend: FakeBackend, path: str, length: str) -> None:
    headers = {"content-length": length.encode("latin-1")}
    response = await client.request("POST" if "v1" in path else "GET", path, content=b"{}", headers=headers)  # type: ignore[arg-type]
    assert "content-length" in error_of(response, 400, "malformed_request")
    assert backend.asked == []


async def test_a_length_of_more_digits_than_python_reads(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/answer", content=b"{}", headers={"content-length": "9" * 5_000})
    error_of(response, 413, "body_too_large")


@pytest.mark.parametrize("headers", [{}, {"content-length": "5"}])
async def test_an_undeclared_length_over_the_limit_is_counted(
    client: httpx.AsyncClient, backend: FakeBackend, headers: dict[str, str]
) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    response = await client.post("/v1/answer", content=in_pieces(MAX_BODY + 1)(), headers=encoded)  # type: ignore[arg-type]
    assert str(MAX_BODY) in error_of(response, 413, "body_too_large")
    assert backend.asked == []


async def test_a_body_of_just_the_limit_is_taken(client: httpx.AsyncClient) -> None:
    head = json.dumps(QUESTION).encode()

    async def padded() -> AsyncIterator[bytes]:
        yield head
        async for piece in in_pieces(MAX_BODY - len(head))():
            yield piece

    headers = {"content-type": "application/json"}
    assert (await client.post("/v1/answer", content=padded(), headers=headers)).status_code == 200
    whole = head.ljust(MAX_BODY)
    assert (await client.post("/v1/answer", content=whole, headers=headers)).status_code == 200


# What broke on our side


BODIES = {"/v1/answer": QUESTION, "/v1/search": {"query": "x"}}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidQuestionError("the question is empty"), 422, "invalid_question"),
        (DeadlineExceededError("too late"), 408, "deadline_exceeded"),
        (OverloadedError("too much", retry_after_s=1.2), 429, "overloaded"),
        (UnavailableError("the synthesizer is not available"), 503, "unavailable"),
        (IndexMissingError("no index"), 503, "index_missing"),
        (SpanOutOfRangeError("a span leaves the text"), 500, "span_out_of_range"),
    ],
)
async def test_a_typed_error_keeps_its_code_and_status(path: str, error: AnswerError, status: int, code: str) -> None:
    async with client_of(api_over(FakeBackend(error=error))) as client:
        response = await client.post(path, json=BODIES[path])
    assert error_of(response, status, code, retryable=status in {408, 429, 503}) == error.message
    assert response.headers.get("retry-after") == ("2" if error.retry_after_s else None)


async def test_a_message_that_no_encoder_takes_is_still_said(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    backend.error = InvalidQuestionError("what is \ud800?")
    assert error_of(await client.post("/v1/answer", json=QUESTION), 422, "invalid_question") == "what is ??"


@pytest.mark.parametrize("path", [*BODIES, "/readyz"])
async def test_an_unexpected_error_shows_nothing_of_itself(path: str, caplog: pytest.LogCaptureFixture) -> None:
    backend = FakeBackend(error=RuntimeError("password=hunter2 in /srv/secret.py"))
    async with client_of(api_over(backend)) as client:
        body = BODIES.get(path)
        response = await client.request("POST" if body else "GET", path, json=body)
    assert "request id" in error_of(response, 500, "internal")
    for hidden in ("hunter2", "RuntimeError", "Traceback", ".py"):
        assert hidden not in response.text
    # The log says what it was and where, under the id that the caller got. What it said may quote anyone.
    assert response.headers["x-request-id"] in caplog.text
    assert "RuntimeError at " in caplog.text
    assert "fakes.py" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(RuntimeError("hunter2"), 500, "internal"), (UnavailableError("closed for today"), 503, "unavailable")],
)
async def test_an_error_in_a_middleware_comes_out_in_our_shape(error: Exception, status: int, code: str) -> None:
    api = api_over(FakeBackend())

    async def fail(_request: object, _call_next: object) -> None:
        raise error

    api.add_middleware(BaseHTTPMiddleware, dispatch=fail)  # type: ignore[arg-type]
    async with client_of(api) as client:
        response = await client.post("/v1/answer", json=QUESTION, headers={"x-request-id": "mine"})
    error_of(response, status, code, retryable=code == "unavailable")
    assert response.headers.get_list("x-request-id") == ["mine"]
    assert "hunter2" not in response.text


# Hostile input


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"question": "\\ud800"}', 400),
        (b'{"question": "x", "\\ud800": 1}', 400),
        (b'{"question": "\\uDC00\\uD83D"}', 400),
        (b'{"question": "\\ud83d\\ude00"}', 200),
        (b'{"question": "a\\u0000b"}', 200),
        (b'{"question": "a\x00b"}', 400),
        (b'{"question": "x"}\x00', 400),
        (b'{"question": "' + b"x" * 100_000 + b'"}', 200),  # how long one may be is the engine's to say
        (b'{"question": ' + b"[" * 900 + b"]" * 900 + b"}", 422),
        (b'{"question": ' + b'{"a":' * 30_000 + b"1" + b"}" * 30_000 + b"}", 400),
        (b'{"' + b"k" * 100_000 + b'": 1, "question": "x"}', 422),
        (b'{"question": "x", "question": "y"}', 400),
        (b'{"question": "x", "timeout_s": 1, "timeout_s": 1}', 400),
        (b"null", 422),
        (b'\xef\xbb\xbf{"question": "x"}', 400),
        ('{"question": "x"}'.encode("utf-16"), 400),
        (b'{"question": "\xff"}', 400),
        (b'{"question": "\xed\xa0\x80"}', 400),
        (b'{"question": "x", "timeout_s": NaN}', 400),
        (b'{"question": "x", "timeout_s": Infinity}', 400),
        (b'{"question": "x", "timeout_s": -Infinity}', 400),
        (b'{"question": "x", "y": [NaN]}', 400),
    ],
)
async def test_hostile_json_is_no_fault_of_ours(client: httpx.AsyncClient, content: bytes, status: int) -> None:
    response = await client.post("/v1/answer", content=content, headers={"content-type": "application/json"})
    if status == 200:
        assert response.status_code == 200
    else:
        message = error_of(response, status, "malformed_json" if status == 400 else "invalid_request")
        assert len(message) <= MAX_MESSAGE_CHARS


@pytest.mark.parametrize("path", ["/%00", "/%ff", "/%ed%a0%80", "/v1/answer/../../etc/passwd", "/" + "x" * 5_000])
async def test_hostile_paths(client: httpx.AsyncClient, path: str) -> None:
    error_of(await client.get(path), 404, "not_found")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=10,
)


async def test_where_things_lie_on_our_machines_is_not_told(client: httpx.AsyncClient, backend: FakeBackend) -> None:
    backend.error = IndexMissingError(
        "the index cannot be read ([Errno 2] '/srv/answer/index/x.json'): run `answer index`"
    )
    message = error_of(await client.post("/v1/answer", json=QUESTION), 503, "index_missing", retryable=True)
    assert message == "the index cannot be read ([Errno 2] '…'): run `answer index`"


@settings(max_examples=150, deadline=None)
@given(body=JSON | st.fixed_dictionaries({"question": JSON}, optional={"timeout_s": JSON, "x": JSON}))
async def test_any_json_gets_an_answer_or_an_error_of_the_callers(body: Any) -> None:
    async with client_of(api_over(FakeBackend())) as client:
        content = json.dumps(body).encode()
        response = await client.post("/v1/answer", content=content, headers={"content-type": "application/json"})
    assert response.status_code in {200, 400, 422}
    if response.status_code != 200:
        assert set(response.json()["error"]) == {"code", "message", "request_id", "retryable"}
