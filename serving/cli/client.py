"""The client side of the HTTP API, as the CLI uses it."""

from __future__ import annotations

import json
from typing import Any

import httpx

from serving.answer.wire import Answer

DEFAULT_URL = "http://127.0.0.1:8000"


class ServerError(Exception):
    """A call that failed, with a reason a person can act on."""


def ask(url: str, question: str, timeout_s: float) -> Answer:
    """Asks a server. Raises :class:`ServerError`."""
    body = _post(url, "/v1/answer", {"question": question, "timeout_s": timeout_s}, timeout_s)
    return Answer.model_validate_json(body)


def ready(url: str) -> bool:
    """Whether every model behind ``url`` has answered a warm-up."""
    try:
        return httpx.get(f"{url}/readyz", timeout=10.0).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _post(url: str, path: str, body: dict[str, Any], timeout_s: float) -> bytes:
    try:
        # The server keeps the deadline; the client waits a little longer, to hear what came of it.
        response = httpx.post(f"{url.rstrip('/')}{path}", json=body, timeout=timeout_s + 10.0)
    except httpx.ConnectError as error:
        raise ServerError(f"no server at {url}; start one with `answer up`, or name another with --url") from error
    except httpx.HTTPError as error:
        raise ServerError(f"the call to {url} failed: {type(error).__name__} {error}") from error
    except httpx.InvalidURL as error:
        raise ServerError(f"{url!r} is no URL: {error}") from error
    if response.is_error:
        raise ServerError(_reason(response))
    return response.content


def _reason(response: httpx.Response) -> str:
    try:
        error = response.json()["error"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return f"the server answered {response.status_code}: {response.text[:200]}"
    return f"{error['message']} ({error['code']}, request {error['request_id']})"
