"""The HTTP API: ``/v1/answer``, ``/v1/search``, ``/healthz``, ``/readyz``. It knows a backend and not what it is."""

from __future__ import annotations

from typing import Annotated, Protocol

from fastapi import FastAPI, Header, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.answer.errors import InvalidQuestionError
from serving.answer.types import Passage
from serving.answer.wire import Answer, PassageOut
from serving.gateway.errors import BodyTooLargeError, ErrorOut, install_error_handlers, request_id_of
from serving.gateway.gaps import GapsBackend, gaps_routes

MAX_TIMEOUT_S = 600.0
MAX_RESULTS = 100


class Backend(GapsBackend, Protocol):
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


class Identity:
    """Puts the request's id on the response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(Request(scope))

        async def send_identified(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        await self._app(scope, receive, send_identified)


class BodyLimit:
    """Refuses a body larger than ``max_bytes``: by its declared length before it is read, else by counting."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if _declared_length(request) > self._max_bytes:
            error = BodyTooLargeError(self._refusal)
            await ErrorOut.of(error, request_id_of(request)).response(error)(scope, receive, send)
            return
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                # FastAPI turns whatever else is raised while it reads the body into "there was an error parsing it".
                raise HTTPException(BodyTooLargeError.status, self._refusal)
            return message

        await self._app(scope, receive_bounded, send)

    @property
    def _refusal(self) -> str:
        return f"the body is too large; at most {self._max_bytes} bytes are taken"


def _declared_length(request: Request) -> int:
    try:
        return int(request.headers.get("content-length", "0"))
    except ValueError:
        return 0  # the bytes are counted as they come


def create_api(backend: Backend, *, default_timeout_s: float, max_body_bytes: int, max_question_chars: int) -> FastAPI:
    """Builds the API over a backend. Every error is ``{"error": {code, message, request_id, retryable}}``."""
    api = FastAPI(title="OpenIndex Answer", version="1", docs_url="/docs", redoc_url=None)
    install_error_handlers(api)

    api.add_middleware(Identity)
    api.add_middleware(BodyLimit, max_bytes=max_body_bytes)

    api.include_router(gaps_routes(backend))

    @api.post("/v1/answer", responses=ERRORS)
    async def answer(
        body: AnswerRequest,
        request: Request,
        x_request_timeout_seconds: Annotated[float | None, Header(gt=0, le=MAX_TIMEOUT_S)] = None,
    ) -> Answer:
        """Answers a question with proven, cited sentences, or declines."""
        return await backend.answer(
            body.question,
            request_id=request_id_of(request),
            timeout_s=body.timeout_s or x_request_timeout_seconds or default_timeout_s,
        )

    @api.post("/v1/search", responses=ERRORS)
    async def search(body: SearchRequest) -> SearchResponse:
        """Finds passages by BM25 alone; no model is touched."""
        if len(body.query) > max_question_chars:
            raise InvalidQuestionError(
                f"the query has {len(body.query)} characters; at most {max_question_chars} are taken"
            )
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
