"""The HTTP API: answers, search, models on their own, knowledge gaps, health. It knows a backend and not what it is."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI

from serving.gateway.access import AccessLog
from serving.gateway.backend import Backend, Limits
from serving.gateway.bodies import BodyLimit, JsonRoute
from serving.gateway.errors import Shield, install_error_handlers
from serving.gateway.identity import Identity
from serving.gateway.openapi import DESCRIPTION, TAGS, DescribedApi
from serving.gateway.routes import answer, check, embeddings, gaps, health, rerank, search

__all__ = ["Backend", "create_api"]


def create_api(
    backend: Backend,
    *,
    default_timeout_s: float,
    max_body_bytes: int,
    max_question_chars: int,
    log_questions: bool = False,
    identified: Callable[[str], None] = lambda _request_id: None,
) -> FastAPI:
    """Builds the API over a backend. Every error is ``{"error": {code, message, request_id, retryable}}``.

    ``log_questions`` puts questions into the log lines, which else tell their length. ``identified`` is told each
    request's id before the request is handled, in the request's own context.
    """
    limits = Limits(default_timeout_s, max_body_bytes, max_question_chars)
    api = DescribedApi(
        title="OpenIndex Answer",
        version="1",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        docs_url="/docs",
        redoc_url=None,
        redirect_slashes=False,  # a path is one or it is not found
    )
    api.router.route_class = JsonRoute
    install_error_handlers(api)
    # The last one added sees a request first.
    api.add_middleware(BodyLimit, max_bytes=max_body_bytes)
    api.add_middleware(Shield)
    api.add_middleware(AccessLog, questions=log_questions)
    api.add_middleware(Identity, identified=identified)
    for routes in (answer, search, rerank, check, embeddings, gaps, health):
        routes.add(api, backend, limits)
    return api
