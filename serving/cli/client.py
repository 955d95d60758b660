"""The client side of the HTTP API, as the CLI uses it."""

from __future__ import annotations

import ipaddress
from typing import Any

import httpx
from pydantic import ValidationError

from serving.answer.wire import Answer

DEFAULT_URL = "http://127.0.0.1:8000"


class ServerError(Exception):
    """A call that failed, with a reason a person can act on."""


def ask(url: str, question: str, timeout_s: float, *, request_id: str | None = None) -> Answer:
    """Asks a server, under a request id of ours if one is given. Raises :class:`ServerError`."""
    headers = {} if request_id is None else {"x-request-id": request_id}
    body = _post(url, "/v1/answer", {"question": question, "timeout_s": timeout_s}, timeout_s, headers)
    try:
        return Answer.model_validate_json(body)
    except ValidationError as error:
        raise ServerError(
            f"what answers at {url} is no answer engine of this version; name another with --url"
        ) from error


def ready(url: str) -> bool:
    """Whether every model behind ``url`` has answered a warm-up."""
    try:
        response = httpx.get(f"{url}/readyz", timeout=10.0, trust_env=not _is_here(url))
    except httpx.HTTPError:
        return False
    return response.status_code == httpx.codes.OK


def probe(url: str, path: str, body: dict[str, Any] | None = None, *, timeout_s: float) -> httpx.Response:
    """What a server says to GET, or to POST with a body, whatever its status. Raises :class:`ServerError`."""
    method = "GET" if body is None else "POST"
    try:
        return httpx.request(
            method, f"{url.rstrip('/')}{path}", json=body, timeout=timeout_s, trust_env=not _is_here(url)
        )
    except httpx.ConnectError as error:
        raise ServerError(f"no server at {url}") from error
    except httpx.TimeoutException as error:
        raise ServerError(f"{path} did not answer in {timeout_s:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerError(f"the call to {url} failed: {type(error).__name__} {error}") from error


def _post(url: str, path: str, body: dict[str, Any], timeout_s: float, headers: dict[str, str]) -> bytes:
    try:
        # The server keeps the deadline; the client waits a little longer, to hear what came of it.
        response = httpx.post(
            f"{url.rstrip('/')}{path}",
            json=body,
            headers=headers,
            timeout=timeout_s + 10.0,
            trust_env=not _is_here(url),
        )
    except httpx.ConnectError as error:
        raise ServerError(f"no server at {url}; start one with `answer up`, or name another with --url") from error
    except httpx.HTTPError as error:
        raise ServerError(f"the call to {url} failed: {type(error).__name__} {error}") from error
    except httpx.InvalidURL as error:
        raise ServerError(f"{url!r} is no URL: {error}") from error
    if response.is_error:
        raise ServerError(_reason(response))
    return response.content


def _is_here(url: str) -> bool:
    """Whether ``url`` is on this machine. A proxy from the environment must not be asked for that."""
    host = httpx.URL(url).host
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


def _reason(response: httpx.Response) -> str:
    try:
        error = response.json()["error"]
        return f"{error['message']} ({error['code']}, request {error['request_id']})"
    except (ValueError, KeyError, TypeError):
        return f"the server answered {response.status_code}: {response.text[:200]}"
