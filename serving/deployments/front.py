"""What stands before Serve's HTTP proxy: one request id for all, and Serve's own errors in our shape.

Serve's proxy takes the caller's ``x-request-id`` as it comes, writes it into its lines, adds it to the response once
more, and fails on one that is not UTF-8. Its own errors (a full queue, no replica, no application) are plain text.

The proxy loads this where ``RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH`` is :data:`CALLBACK` in the environment that Ray
was started in; ``answer up`` sees to that.
"""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.answer.errors import (
    AnswerError,
    DeadlineExceededError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
)
from serving.gateway.errors import ErrorOut
from serving.gateway.identity import HEADER, plain
from serving.logs import described

CALLBACK_VARIABLE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
CALLBACK = "serving.deployments.front.middlewares"

log = logging.getLogger("ray.serve")

RETRY_S = 1.0
_READ_BY_SERVE = frozenset({"serve_multiplexed_model_id", "x_session_id"})


def middlewares() -> list[Middleware]:
    """What Serve calls for."""
    return [Middleware(Front)]


class Front:
    """Outermost in the proxy. Serve's own pages (``/-/``) are let through as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/-/"):
            await self._app(scope, receive, send)
            return
        request_id = _identify(scope)
        reply = _Reply(request_id, send)
        try:
            await self._app(scope, receive, reply.send)
        except Exception as error:
            log.error("request %s failed in the proxy: %s", request_id, described(error))  # noqa: TRY400 - it quotes
            if reply.begun:
                raise
            broken = AnswerError("something broke on our side; the request id finds it in the logs")
            await ErrorOut.of(broken, request_id).response(broken)(scope, receive, send)


class _Reply:
    """Sends a response on, with one request id; a plain text error is kept back and ours is sent instead."""

    def __init__(self, request_id: str, send: Send) -> None:
        self._request_id = request_id
        self._send = send
        self._foreign: Message | None = None
        self._text = b""
        self.begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            headers[HEADER] = self._request_id
            message = {**message, "headers": headers.raw}
            if message["status"] >= 400 and headers.get("content-type", "").startswith("text/"):
                self._foreign = message
                return
        if self._foreign is None:
            self.begun = True
            await self._send(message)
            return
        self._text += message.get("body", b"")
        if not message.get("more_body", False):
            error = _ours(self._foreign["status"], self._text)
            response = ErrorOut.of(error, self._request_id).response(error)
            self.begun = True
            await self._send(
                {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
            )
            await self._send({"type": "http.response.body", "body": response.body})


def _identify(scope: Scope) -> str:
    """Gives the request one plain id, and takes from it what Serve cannot read."""
    request_id = plain(Request(scope).headers.get(HEADER))
    kept = [
        (name, value) for name, value in scope["headers"] if name != HEADER.encode() and not _unreadable(name, value)
    ]
    scope["headers"] = [*kept, (HEADER.encode(), request_id.encode())]
    return request_id


def _unreadable(name: bytes, value: bytes) -> bool:
    if name.decode("latin-1").replace("-", "_") not in _READ_BY_SERVE:
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def _ours(status: int, text: bytes) -> AnswerError:
    """The typed error for one of Serve's own. Its words name parts of ours, and are left out."""
    if b"backpressure" in text.lower() or status == OverloadedError.status:
        return OverloadedError("the gateway has too much waiting; come back later", retry_after_s=RETRY_S)
    if status == DeadlineExceededError.status:
        return DeadlineExceededError("the deadline passed while waiting for the gateway")
    if status == UnavailableError.status:
        return UnavailableError("the gateway is not available", retry_after_s=RETRY_S)
    if status == NotFoundError.status:
        return NotFoundError("no application answers at this path; it may not have been deployed yet")
    return AnswerError("something broke on our side; the request id finds it in the logs")
