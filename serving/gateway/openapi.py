"""The API's description: routes as FastAPI sees them, errors from the table of codes, headers for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from serving.answer.codes import CODES, Code
from serving.gateway.backend import MAX_TIMEOUT_S
from serving.gateway.errors import ErrorOut
from serving.gateway.examples import REQUEST_ID
from serving.gateway.stream_events import ERROR, KINDS

DESCRIPTION = """\
Answers in which every sentence is entailed by a passage it cites, or an honest decline.

A decline is an outcome (200), never an error. Every error is `{"error": {code, message, request_id, retryable}}`;
`code` is stable. Every response carries `x-request-id`: the caller's, where that is a plain token of at most 128
characters, else a new one.
"""

TAGS = [
    {"name": "answers", "description": "Proven, cited answers."},
    {"name": "search", "description": "Passages, without any model."},
    {"name": "models", "description": "Rerank, check and embed: the models of an answer, called on their own."},
    {"name": "gaps", "description": "Questions that were declined: what the corpus should be able to answer."},
    {"name": "health", "description": "For probes."},
]

_SCHEMA = "#/components/schemas/{model}"
_ERROR = {"$ref": "#/components/schemas/ErrorOut"}
_REQUEST_ID = {"$ref": "#/components/headers/RequestId"}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route's ``responses`` says of these statuses. Raises :class:`KeyError` for one that no code has."""
    return {status: {"model": ErrorOut, "description": _title(_by_status()[status])} for status in statuses}


def event_stream(examples: Mapping[str, str]) -> dict[str, Any]:
    """What a route's ``responses`` says of the content of a stream of events. ``examples`` are whole streams."""
    return {
        "text/event-stream": {
            "itemSchema": {
                "oneOf": [_event(name, kind.__name__) for name, kind in (*KINDS.items(), (ERROR, ErrorOut))]
            },
            "examples": {name: {"summary": name, "value": value} for name, value in examples.items()},
        }
    }


def _event(name: str, kind: str) -> dict[str, Any]:
    content = {"$ref": f"#/components/schemas/{kind}"}
    properties = {
        "id": {"type": "string"},
        "event": {"const": name},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": content},
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


GET_ERRORS = (400, 413, 500)
"""How a call without a body can fail."""
POST_ERRORS = (400, 408, 413, 415, 422, 429, 500, 503)
"""How a call with a body can fail."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Examples of an operation, by a name in words: bodies that are sent, and those that come back, by status."""

    requests: Mapping[str, Any]
    responses: Mapping[int, Mapping[str, BaseModel]]


class DescribedApi(FastAPI):
    """FastAPI whose description has every error and header in one place, and the examples that routes show."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._shown: dict[str, Shown] = {}

    def show(
        self,
        operation_id: str,
        *,
        responses: Mapping[int, Mapping[str, BaseModel]],
        requests: Mapping[str, Any] | None = None,
    ) -> None:
        """Examples for an operation. FastAPI's own way of giving them loses every null."""
        self._shown[operation_id] = Shown(requests or {}, responses)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            _complete(super().openapi(), self._shown)
        return super().openapi()


def _complete(document: dict[str, Any], shown: Mapping[str, Shown]) -> None:
    components = document.setdefault("components", {})
    components["headers"] = _headers()
    components["parameters"] = _parameters()
    components["responses"] = {
        f"Error{status}": _response(codes, status) for status, codes in sorted(_by_status().items())
    }
    _, kinds = models_json_schema([(kind, "serialization") for kind in KINDS.values()], ref_template=_SCHEMA)
    for name, schema in kinds["$defs"].items():
        components["schemas"].setdefault(name, schema)
    for operation in _operations(document):
        operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/RequestId"})
        if operation["operationId"] in shown:
            _show(operation, shown[operation["operationId"]])
        for status, response in operation["responses"].items():
            if response.get("content", {}).get("application/json", {}).get("schema") == _ERROR:
                operation["responses"][status] = {"$ref": f"#/components/responses/Error{status}"}
            else:
                response.setdefault("headers", {})["x-request-id"] = _REQUEST_ID


def _show(operation: dict[str, Any], shown: Shown) -> None:
    if shown.requests:
        operation["requestBody"]["content"]["application/json"]["examples"] = {
            name: {"summary": name, "value": value} for name, value in shown.requests.items()
        }
    for status, values in shown.responses.items():
        operation["responses"][str(status)]["content"]["application/json"]["examples"] = {
            name: {"summary": name, "value": value.model_dump(mode="json", by_alias=True)}
            for name, value in values.items()
        }


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def _by_status() -> dict[int, list[Code]]:
    grouped: dict[int, list[Code]] = {}
    for code in CODES:
        grouped.setdefault(code.status, []).append(code)
    return grouped


def _title(codes: list[Code]) -> str:
    return ", ".join(code.name for code in codes)


def _response(codes: list[Code], status: int) -> dict[str, Any]:
    headers = {"x-request-id": _REQUEST_ID}
    if any(code.waits for code in codes):
        headers["retry-after"] = {"$ref": "#/components/headers/RetryAfter"}
    if status == 405:
        headers["allow"] = {"$ref": "#/components/headers/Allow"}
    return {
        "description": "\n".join(f"* `{code.name}`: {code.means} {code.remedy}" for code in codes),
        "headers": headers,
        "content": {
            "application/json": {
                "schema": _ERROR,
                "examples": {code.name: {"summary": code.means, "value": example(code)} for code in codes},
            }
        },
    }


def example(code: Code) -> dict[str, Any]:
    """An error response's body as a caller may get it."""
    body = {"code": code.name, "message": code.example, "request_id": REQUEST_ID, "retryable": code.retryable}
    return {"error": body}


def _headers() -> dict[str, Any]:
    return {
        "RequestId": {
            "description": "The request's id, in every log line of it: the caller's or a new one.",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 128},
            "example": REQUEST_ID,
        },
        "RetryAfter": {
            "description": "Whole seconds until the same call may succeed; absent where nobody knows.",
            "schema": {"type": "integer", "minimum": 0},
            "example": 3,
        },
        "Allow": {"description": "The methods of this path.", "schema": {"type": "string"}, "example": "POST"},
    }


def _parameters() -> dict[str, Any]:
    return {
        "RequestId": {
            "name": "x-request-id",
            "in": "header",
            "description": "An id for this request: a plain token of at most 128 characters, else it is replaced.",
            "schema": {"type": "string"},
            "example": REQUEST_ID,
        }
    }


TIMEOUT_DESCRIPTION = f"Deadline in seconds, more than 0 and at most {MAX_TIMEOUT_S:g}; the body's own goes before it."
