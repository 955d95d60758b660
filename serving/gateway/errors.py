"""Errors on the wire: one shape, stable codes, the right status, and nothing internal in them."""

from __future__ import annotations

import logging
import math
import re
import uuid
from collections.abc import Mapping, Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from serving.answer.errors import AnswerError

log = logging.getLogger(__name__)

MAX_MESSAGE_CHARS = 1_000
_PLAIN_ID = re.compile(r"[\x21-\x7e]{1,128}")


class BodyTooLargeError(AnswerError):
    code = "body_too_large"
    status = 413


class MalformedJsonError(AnswerError):
    code = "malformed_json"
    status = 400


class InvalidRequestError(AnswerError):
    """A field is missing, unknown or of the wrong kind."""

    code = "invalid_request"
    status = 422


class NotFoundError(AnswerError):
    code = "not_found"
    status = 404


class MethodNotAllowedError(AnswerError):
    code = "method_not_allowed"
    status = 405


class ErrorBody(BaseModel):
    code: str
    message: str
    request_id: str
    retryable: bool


class ErrorOut(BaseModel):
    """``{"error": {code, message, request_id, retryable}}``."""

    error: ErrorBody

    @classmethod
    def of(cls, error: AnswerError, request_id: str) -> ErrorOut:
        # Messages quote the caller, who may have sent a lone surrogate, which no encoder takes, or a megabyte of field.
        message = error.message[:MAX_MESSAGE_CHARS].encode(errors="replace").decode()
        return cls(error=ErrorBody(code=error.code, message=message, request_id=request_id, retryable=error.retryable))

    def response(self, error: AnswerError, headers: Mapping[str, str] | None = None) -> JSONResponse:
        headers = {**(headers or {}), "x-request-id": self.error.request_id}
        if error.retry_after_s is not None:
            headers["retry-after"] = str(math.ceil(error.retry_after_s))
        return JSONResponse(self.model_dump(), status_code=error.status, headers=headers)


def request_id_of(request: Request) -> str:
    """The request's id, each time the same: the caller's ``x-request-id`` if that is a plain token, else a new one."""
    if not hasattr(request.state, "request_id"):
        given = request.headers.get("x-request-id", "")
        request.state.request_id = given if _PLAIN_ID.fullmatch(given) else uuid.uuid4().hex
    return str(request.state.request_id)


def install_error_handlers(api: FastAPI) -> None:
    """Makes every way a request can fail come out in our shape."""

    def answer(request: Request, error: AnswerError, headers: Mapping[str, str] | None = None) -> JSONResponse:
        return ErrorOut.of(error, request_id_of(request)).response(error, headers)

    @api.exception_handler(AnswerError)
    async def typed(request: Request, error: AnswerError) -> JSONResponse:
        return answer(request, error)

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        faults = error.errors()
        if any(fault["type"] == "json_invalid" for fault in faults):
            return answer(request, MalformedJsonError("the body is no JSON; send application/json"))
        said = "; ".join(f"{_place(fault['loc'])}: {fault['msg']}" for fault in faults)
        return answer(request, InvalidRequestError(said))

    @api.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        kind = _KINDS.get(error.status_code, InvalidRequestError)
        return answer(request, kind(f"{request.method} {request.url.path}: {error.detail}"), error.headers)

    @api.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        if isinstance(error, AnswerError):  # raised in a middleware, outside the reach of ``typed``
            return answer(request, error)
        log.error("request %s failed", request_id_of(request), exc_info=error)
        return answer(request, AnswerError("something broke on our side; the request id finds it in the logs"))


_KINDS: dict[int, type[AnswerError]] = {
    400: MalformedJsonError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    413: BodyTooLargeError,
}


def _place(location: Sequence[int | str]) -> str:
    """Where a fault is, for people: the path of the field, or ``body`` when the whole of it is of the wrong kind."""
    return ".".join(str(part) for part in location[1:] or location)
