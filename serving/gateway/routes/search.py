"""``POST /v1/search``."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, Field

from serving.answer.errors import InvalidQuestionError
from serving.answer.wire import PassageOut
from serving.gateway import examples
from serving.gateway.access import access_of
from serving.gateway.backend import Backend, Limits
from serving.gateway.openapi import POST_ERRORS, DescribedApi, errors
from serving.gateway.routes.common import Body, Timeout

MAX_RESULTS = 100


class SearchRequest(Body):
    query: Annotated[str, Field(min_length=1, description="Words to look for (BM25).")]
    limit: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="Passages at most.")] = 10


class SearchResponse(BaseModel):
    """Passages, best first."""

    passages: list[PassageOut]


def add(api: DescribedApi, backend: Backend, limits: Limits) -> None:
    api.show(
        "search",
        requests={"words": {"query": "itertools chain", "limit": 3}},
        responses={200: {"found": SearchResponse(passages=[PassageOut.of(examples.PASSAGE)])}},
    )

    @api.post(
        "/v1/search",
        operation_id="search",
        tags=["search"],
        summary="Find passages",
        response_description="The passages, best first; none when nothing holds the words.",
        responses=errors(*POST_ERRORS),
    )
    async def search(
        body: SearchRequest,
        request: Request,
        timeout: Timeout = None,  # noqa: ASYNC109 - it travels with the query
    ) -> SearchResponse:
        """Finds passages by BM25 alone; no model is touched."""
        access_of(request).asked(body.query)
        if len(body.query) > limits.max_question_chars:
            raise InvalidQuestionError(
                f"the query has {len(body.query)} characters; at most {limits.max_question_chars} are taken"
            )
        passages = await backend.search(body.query, body.limit, timeout_s=timeout or limits.default_timeout_s)
        return SearchResponse(passages=[PassageOut.of(passage) for passage in passages])
