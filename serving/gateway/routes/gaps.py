"""``GET /v1/gaps``: the declined questions, page by page."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from serving.answer.types import DeclineReason
from serving.gaps.records import MAX_PAGE, GapPage, GapQuery, Order, State
from serving.gateway import examples
from serving.gateway.backend import Backend, Limits
from serving.gateway.openapi import DescribedApi, errors

TIMEOUT_S = 15.0


def add(api: DescribedApi, backend: Backend, _limits: Limits) -> None:
    api.show("gaps", responses={200: {"a page": examples.gaps()}})

    @api.get(
        "/v1/gaps",
        operation_id="gaps",
        tags=["gaps"],
        summary="List knowledge gaps",
        response_description="The gaps of a page, and where the next one begins.",
        responses=errors(400, 404, 408, 413, 422, 429, 500, 503),
    )
    async def gaps(
        state: Annotated[State | None, Query(description="`open` or `resolved`; both when left out.")] = None,
        reason: Annotated[DeclineReason | None, Query(description="Gaps last declined for this reason.")] = None,
        order: Annotated[Order, Query(description="`newest` by first asking, or `most_asked`.")] = Order.NEWEST,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Gaps a page.")] = 50,
        cursor: Annotated[str | None, Query(max_length=128, description="`next_cursor` of the page before.")] = None,
    ) -> GapPage:
        """The knowledge gaps: declined questions, those that ask the same as one, with how often and what was found.

        `next_cursor` is null on the last page. In order `newest` every gap comes once, whatever is added meanwhile; in
        order `most_asked` one whose count rises between two pages may be passed over.
        """
        query = GapQuery(state=state, reason=reason, order=order, limit=limit, cursor=cursor)
        return await backend.gaps(query, timeout_s=TIMEOUT_S)
