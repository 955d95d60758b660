"""Errors on the wire: one shape, stable codes, the right status, and nothing internal in them."""

from __future__ import annotations

import logging
import math

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from serving.answer.errors import AnswerError

log = logging.getLogger(__name__)


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
        return cls(
            error=ErrorBody(code=error.code, message=error.message, request_id=request_id, retryable=error.retryable)
        )

    def response(self, error: AnswerError) -> JSONResponse:
        headers = {"x-request-id": self.error.request_id}
        if error.retry_after_s is not None:
            headers["retry-after"] = str(math.ceil(error.retry_after_s))
        return JSONResponse(self.model_dump(), status_code=error.status, headers=headers)


def request_id_of(request: Request) -> str:
    return str(getattr(request.state, "request_id", "") or request.headers.get("x-request-id", ""))


def install_error_handlers(api: FastAPI) -> None:
    """Makes every way a request can fail come out in our shape."""

    def answer(request: Request, error: AnswerError) -> JSONResponse:
        return ErrorOut.of(error, request_id_of(request)).response(error)

    @api.exception_handler(AnswerError)
    async def typed(request: Request, error: AnswerError) -> JSONResponse:
        return answer(request, error)

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        faults = error.errors()
        if any(fault["type"] == "json_invalid" for fault in faults):
            return answer(request, MalformedJsonError("the body is no JSON; send application/json"))
        said = "; ".join(f"{'.'.join(str(part) for part in fault['loc'][1:])}: {fault['msg']}" for fault in faults)
        return answer(request, InvalidRequestError(said))

    @api.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        kinds: dict[int, type[AnswerError]] = {404: NotFoundError, 405: MethodNotAllowedError, 400: MalformedJsonError}
        kind = kinds.get(error.status_code, InvalidRequestError)
        return answer(request, kind(f"{request.method} {request.url.path}: {error.detail}"))

    @api.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("request %s failed", request_id_of(request), exc_info=error)
        return answer(request, AnswerError("something broke on our side; the request id finds it in the logs"))
