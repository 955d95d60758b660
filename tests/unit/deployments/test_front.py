"""What stands before Serve's proxy, around Serve's own middleware and responses."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest
from ray.serve._private.http_util import (
    RequestIdMiddleware,
    convert_object_to_asgi_messages,
    validate_http_proxy_callback_return,
)
from ray.serve._private.utils import call_function_from_import_path

from serving.deployments.front import CALLBACK, Front
from tests.unit.gateway.fakes import FakeBackend
from tests.unit.gateway.test_http import QUESTION, api_over, client_of, error_of


def behind(app: Any) -> httpx.AsyncClient:
    """A client of ``app`` behind Serve's middleware and ours, as the proxy stacks them."""
    return client_of(Front(RequestIdMiddleware(app)))  # type: ignore[arg-type]


def saying(text: str, status: int, seen: list[dict[str, Any]] | None = None) -> Any:
    async def fake_proxy(scope: Any, _receive: Any, send: Any) -> None:
        if seen is not None:
            seen.append(scope)
        for message in convert_object_to_asgi_messages(text, status_code=status):
            await send(message)

    return fake_proxy


def test_serve_finds_it() -> None:
    [middleware] = validate_http_proxy_callback_return(call_function_from_import_path(CALLBACK))
    assert middleware.cls is Front


@pytest.mark.parametrize(
    ("text", "status", "ours", "code"),
    [
        ("Request dropped due to backpressure (num_queued_requests=9, max_queued_requests=8).", 503, 429, "overloaded"),
        ("Deployment 'Gateway' is unavailable", 503, 503, "unavailable"),
        ("Request abc timed out after 5s.", 408, 408, "deadline_exceeded"),
        ("Path '/x' not found. Ping http://.../-/routes for available routes.", 404, 404, "not_found"),
        ("Traceback (most recent call last): /srv/x.py", 500, 500, "internal"),
    ],
)
async def test_serves_own_errors_come_out_in_our_shape(text: str, status: int, ours: int, code: str) -> None:
    async with behind(saying(text, status)) as client:
        response = await client.post("/v1/answer", json=QUESTION, headers={"x-request-id": "mine"})
    message = error_of(response, ours, code, retryable=code in {"overloaded", "unavailable", "deadline_exceeded"})
    assert response.headers.get_list("x-request-id") == ["mine"]
    assert ("retry-after" in response.headers) is (code in {"overloaded", "unavailable"})
    for hidden in ("Gateway", "backpressure", "Ping", "srv"):
        assert hidden not in message


async def test_what_the_gateway_says_passes_as_it_is() -> None:
    async with behind(api_over(FakeBackend())) as client:
        response = await client.post("/v1/answer", json=QUESTION, headers={"x-request-id": "mine"})
        assert (response.status_code, response.json()["request_id"]) == (200, "mine")
        assert response.headers.get_list("x-request-id") == ["mine"]
        error_of(await client.get("/nowhere"), 404, "not_found")
        assert "text/html" in (await client.get("/docs")).headers["content-type"]


@pytest.mark.parametrize("given", [b"", b"two words", b"\xff\xfe", b"x" * 200, b"a\x1b[31m", None])
async def test_one_plain_id_for_all(given: bytes | None) -> None:
    seen: list[dict[str, Any]] = []
    headers = {"x-request-id": given} if given is not None else {}
    async with behind(saying("hello", 200, seen)) as client:
        response = await client.get("/healthz", headers=headers)  # type: ignore[arg-type]
    [inside] = [value.decode() for name, value in seen[0]["headers"] if name == b"x-request-id"]
    assert response.headers.get_list("x-request-id") == [inside]
    assert len(inside) == 32
    assert inside.isalnum()


@pytest.mark.parametrize("name", ["serve_multiplexed_model_id", "serve-multiplexed-model-id", "x-session-id"])
async def test_what_serve_cannot_read_is_taken_away(name: str) -> None:
    seen: list[dict[str, Any]] = []
    async with behind(saying("hello", 200, seen)) as client:
        await client.get("/healthz", headers={name: b"\xff", "user-agent": b"caf\xe9"})  # type: ignore[dict-item]
    names = [found for found, _ in seen[0]["headers"]]
    assert name.encode() not in names
    assert b"user-agent" in names


async def test_serves_own_pages_are_let_through() -> None:
    async with behind(saying("draining", 503)) as client:
        response = await client.get("/-/healthz")
    assert (response.status_code, response.text) == (503, "draining")


async def test_a_fault_in_the_proxy(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fake_proxy(_scope: Any, _receive: Any, _send: Any) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr(logging.getLogger("ray.serve"), "propagate", True)
    async with behind(fake_proxy) as client:
        response = await client.get("/healthz")
    error_of(response, 500, "internal")
    assert response.headers["x-request-id"] in caplog.text
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text + response.text
