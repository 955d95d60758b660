"""Errors on the wire: one shape, stable codes, the right status, and nothing internal in them."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.answer.errors import (
    AnswerError,
    InvalidRequestError,
    MalformedRequestError,
    MethodNotAllowedError,
    NotFoundError,
)
from serving.gateway.access import access_of
from serving.gateway.identity import request_id_of
from serving.logs import described, shortened

log = logging.getLogger(__name__)

MAX_MESSAGE_CHARS = 1_000
_FILE = re.compile(r"(?<![\w/.:])(?:/[\w.@+-]+){2,}/?")


class ErrorBody(BaseModel):
    """What went wrong. ``code`` is stable and for programs; ``message`` is for people and may change."""

    model_config = ConfigDict(extra="forbid")

    code: str
    message: str
    request_id: str
    retryable: bool


class ErrorOut(BaseModel):
    """``{"error": {code, message, request_id, retryable}}``."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorBody

    @classmethod
    def of(cls, error: AnswerError, request_id: str) -> ErrorOut:
        # Messages quote the caller, who may have sent a lone surrogate, which no encoder takes, or a megabyte of field.
        message = error.message[:MAX_MESSAGE_CHARS].encode(errors="replace").decode()
        if error.status >= 500:
            message = _FILE.sub("…", message)  # where things lie on our machines is nobody else's business
        return cls(error=ErrorBody(code=error.code, message=message, request_id=request_id, retryable=error.retryable))

    def response(self, error: AnswerError, headers: Mapping[str, str] | None = None) -> JSONResponse:
        headers = {**(headers or {}), "x-request-id": self.error.request_id}
        if error.retry_after_s is not None:
            headers["retry-after"] = str(math.ceil(error.retry_after_s))
        return JSONResponse(self.model_dump(), status_code=error.status, headers=headers)


def reported(request: Request, error: Exception) -> AnswerError:
    """The typed error for one of any kind, noted. What is not ours is logged; its caller learns the request id only."""
    if not isinstance(error, AnswerError):
        log.error("request %s failed: %s", request_id_of(request), described(error))
        error = AnswerError("something broke on our side; the request id finds it in the logs")
    access_of(request).failed(error.code)
    return error


def respond(request: Request, error: Exception, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response for an error of any kind."""
    error = reported(request, error)
    return ErrorOut.of(error, request_id_of(request)).response(error, headers)


class BrokenOffError(Exception):
    """A response that was begun cannot be finished. The server above closes the connection, so that this is seen."""


class Shield:
    """Answers for whatever is raised inside, so that no server above prints it. What was begun is broken off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception as error:
            if started and isinstance(error.__cause__, AnswerError):
                error = error.__cause__  # Starlette wraps what it has a handler for and comes too late for
            response = respond(Request(scope), error)
            if started:
                raise BrokenOffError from None
            await response(scope, receive, send)


def install_error_handlers(api: FastAPI) -> None:
    """Makes every way a request can fail come out in our shape."""

    @api.exception_handler(AnswerError)
    async def typed(request: Request, error: AnswerError) -> JSONResponse:
        return respond(request, error)

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        said = "; ".join(f"{_place(fault['loc'])}: {fault['msg']}" for fault in error.errors())
        return respond(request, InvalidRequestError(said))

    @api.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        path = shortened(request.url.path)
        if error.status_code == NotFoundError.status:
            return respond(request, NotFoundError(f"there is nothing at {path}; /openapi.json lists what there is"))
        if error.status_code == MethodNotAllowedError.status:
            allow = ", ".join(_methods(api, request.scope))
            said = f"{path} does not take {shortened(request.method)}; it takes {allow}"
            return respond(request, MethodNotAllowedError(said), {"allow": allow})
        return respond(request, MalformedRequestError(f"the request was refused: {error.detail}"), error.headers)

    @api.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        if isinstance(error, BrokenOffError):
            return JSONResponse(None)  # nobody gets it: the response has begun, and its error is in the log
        return respond(request, error)  # raised outside the shield


def _methods(api: FastAPI, scope: Scope) -> list[str]:
    """All methods of all routes at the request's path."""
    routes = [route for route in api.routes if route.matches(scope)[0] is not Match.NONE]
    return sorted({method for route in routes for method in getattr(route, "methods", None) or ()})


def _place(location: Sequence[int | str]) -> str:
    """Where a fault is, for people: the path of the field, or ``body`` when the whole of it is of the wrong kind."""
    return ".".join(str(part) for part in location[1:] or location)
