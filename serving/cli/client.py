"""The client side of the HTTP API, as the CLI uses it."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from httpx_sse import EventSource, SSEError, connect_sse
from pydantic import ValidationError

from serving.answer.wire import Answer
from serving.gateway.stream_events import ERROR, KINDS, Told

DEFAULT_URL = "http://127.0.0.1:8000"
PATIENCE_S = 10.0
"""The server keeps the deadline; the client waits so many seconds longer, to hear what came of it."""


class ServerError(Exception):
    """A call that failed, with a reason a person can act on."""


def ask(url: str, question: str, timeout_s: float, *, request_id: str | None = None) -> Answer:
    """Asks a server, under a request id of ours if one is given. Raises :class:`ServerError`."""
    headers = {} if request_id is None else {"x-request-id": request_id}
    body = _post(url, "/v1/answer", {"question": question, "timeout_s": timeout_s}, timeout_s, headers)
    try:
        return Answer.model_validate_json(body)
    except ValidationError as error:
        raise _another_kind(url) from error


def stream(url: str, question: str, timeout_s: float) -> Generator[Told, None, None]:
    """What a server says of a question while it answers it; the Answer is the last. Closing this hangs up.

    Raises :class:`ServerError`.
    """
    body = {"question": question, "timeout_s": timeout_s, "stream": True}
    with (
        _calling(url),
        httpx.Client(timeout=timeout_s + PATIENCE_S, trust_env=not _is_here(url)) as client,
        connect_sse(client, "POST", f"{url.rstrip('/')}/v1/answer", json=body) as source,
    ):
        if source.response.is_error:
            source.response.read()
            raise ServerError(_reason(source.response))
        try:
            yield from _said(source)
        except (SSEError, ValueError, KeyError, TypeError) as error:  # pydantic's and JSON's too
            raise _another_kind(url) from error


def _said(source: EventSource) -> Iterator[Told]:
    for event in source.iter_sse():
        if event.event == ERROR:
            raise ServerError(_message(json.loads(event.data)))
        if event.event in KINDS:  # others may come with a later version
            said = KINDS[event.event].model_validate_json(event.data)
            yield said
            if isinstance(said, Answer):
                return
    raise ServerError("the server hung up before the answer was whole; ask again")


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
    with _calling(url):
        response = httpx.post(
            f"{url.rstrip('/')}{path}",
            json=body,
            headers=headers,
            timeout=timeout_s + PATIENCE_S,
            trust_env=not _is_here(url),
        )
    if response.is_error:
        raise ServerError(_reason(response))
    return response.content


@contextmanager
def _calling(url: str) -> Iterator[None]:
    """Raises what goes wrong in a call as :class:`ServerError`."""
    try:
        yield
    except httpx.ConnectError as error:
        raise ServerError(f"no server at {url}; start one with `answer up`, or name another with --url") from error
    except httpx.HTTPError as error:
        raise ServerError(f"the call to {url} failed: {type(error).__name__} {error}") from error
    except httpx.InvalidURL as error:
        raise ServerError(f"{url!r} is no URL: {error}") from error


def _another_kind(url: str) -> ServerError:
    return ServerError(f"what answers at {url} is no answer engine of this version; name another with --url")


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
        return _message(response.json())
    except (ValueError, KeyError, TypeError):
        return f"the server answered {response.status_code}: {response.text[:200]}"


def _message(body: Any) -> str:
    """What an error's body says. Raises ValueError, KeyError or TypeError when it is none of ours."""
    error = body["error"]
    return f"{error['message']} ({error['code']}, request {error['request_id']})"
