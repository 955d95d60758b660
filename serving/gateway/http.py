"""The HTTP API: ``/v1/answer``, ``/v1/search``, ``/healthz``, ``/readyz``. It knows a backend and not what it is."""

from __future__ import annotations

import uuid
from typing import Annotated, Protocol

from fastapi import FastAPI, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving.answer.types import Passage
from serving.answer.wire import Answer, PassageOut
from serving.gateway.errors import BodyTooLargeError, ErrorOut, install_error_handlers, request_id_of

MAX_TIMEOUT_S = 600.0
MAX_RESULTS = 100


class Backend(Protocol):
    """What the API asks of the system. Errors are :class:`~serving.answer.errors.AnswerError`."""

    async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Answer: ...

    async def search(self, query: str, limit: int, *, timeout_s: float) -> list[Passage]: ...

    async def ready(self) -> dict[str, bool]:
        """Each model, and whether it has answered a warm-up."""
        ...


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AnswerRequest(Body):
    question: Annotated[str, Field(description="A question in natural language.")]
    timeout_s: Annotated[
        float | None, Field(gt=0, le=MAX_TIMEOUT_S, description="Deadline in seconds; the server's when left out.")
    ] = None


class SearchRequest(Body):
    query: Annotated[str, Field(min_length=1, description="Words to look for (BM25).")]
    limit: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = 10


class SearchResponse(BaseModel):
    passages: list[PassageOut]


class Health(BaseModel):
    status: str


class Readiness(BaseModel):
    """``models`` says of each whether it has answered a warm-up."""

    ready: bool
    models: dict[str, bool]


ERRORS: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorOut} for status in (400, 408, 413, 422, 429, 500, 503)
}


def create_api(backend: Backend, *, default_timeout_s: float, max_body_bytes: int, max_question_chars: int) -> FastAPI:
    """Builds the API over a backend. Every error is ``{"error": {code, message, request_id, retryable}}``."""
    api = FastAPI(title="OpenIndex Answer", version="1", docs_url="/docs", redoc_url=None)
    install_error_handlers(api)

    @api.middleware("http")
    async def identify(request: Request, call_next):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        request.state.request_id = request.headers.get("x-request-id") or uuid.uuid4().hex
        response: Response = await call_next(request)
        response.headers["x-request-id"] = request.state.request_id
        return response

    @api.middleware("http")
    async def bound_body(request: Request, call_next):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > max_body_bytes:
            error = BodyTooLargeError(f"the body has {length} bytes; at most {max_body_bytes} are taken")
            return ErrorOut.of(error, request_id_of(request)).response(error)
        return await call_next(request)

    @api.post("/v1/answer", responses=ERRORS)
    async def answer(
        body: AnswerRequest,
        request: Request,
        x_request_timeout_seconds: Annotated[float | None, Header(gt=0, le=MAX_TIMEOUT_S)] = None,
    ) -> Answer:
        """Answers a question with proven, cited sentences, or declines."""
        return await backend.answer(
            body.question,
            request_id=request.state.request_id,
            timeout_s=body.timeout_s or x_request_timeout_seconds or default_timeout_s,
        )

    @api.post("/v1/search", responses=ERRORS)
    async def search(body: SearchRequest) -> SearchResponse:
        """Finds passages by BM25 alone; no model is touched."""
        if len(body.query) > max_question_chars:
            body = body.model_copy(update={"query": body.query[:max_question_chars]})
        passages = await backend.search(body.query, body.limit, timeout_s=default_timeout_s)
        return SearchResponse(passages=[PassageOut.of(passage) for passage in passages])

    @api.get("/healthz")
    async def healthz() -> Health:
        """The process serves."""
        return Health(status="ok")

    @api.get("/readyz", responses={503: {"model": Readiness}})
    async def readyz(response: Response) -> Readiness:
        """Every model has answered a warm-up."""
        models = await backend.ready()
        ready = bool(models) and all(models.values())
        response.status_code = 200 if ready else 503
        return Readiness(ready=ready, models=models)

    return api
