"""The request's id: chosen once, on the response, and in every line that is logged for the request."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-request-id"
_PLAIN_ID = re.compile(r"[\x21-\x7e]{1,128}")


def plain(given: str | None) -> str:
    """The caller's id if it is a plain token of at most 128 characters, else a new one."""
    return given if given is not None and _PLAIN_ID.fullmatch(given) else uuid.uuid4().hex


def request_id_of(request: Request) -> str:
    """The request's id, each time the same."""
    if not hasattr(request.state, "request_id"):
        request.state.request_id = plain(request.headers.get(HEADER))
    return str(request.state.request_id)


class Identity:
    """Puts the request's id on the response, and tells it to ``identified`` before anything is done."""

    def __init__(self, app: ASGIApp, *, identified: Callable[[str], None]) -> None:
        self._app = app
        self._identified = identified

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(Request(scope))
        self._identified(request_id)

        async def send_identified(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        await self._app(scope, receive, send_identified)
