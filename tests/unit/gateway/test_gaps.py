"""``GET /v1/gaps`` over a scripted backend, and over a real backlog."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from serving.answer.types import DeclineReason
from serving.gaps.database import Database
from serving.gaps.errors import GapsUnavailableError, InvalidCursorError
from serving.gaps.records import MAX_PAGE, GapPage, GapQuery, Order, State
from serving.gaps.settings import GapsSettings
from serving.gaps.store import GapStore
from tests.unit.gaps.fakes import asking, at
from tests.unit.gateway.fakes import FakeBackend
from tests.unit.gateway.test_http import api_over, client_of, error_of


async def get(backend: FakeBackend, **query: object) -> httpx.Response:
    async with client_of(api_over(backend)) as client:
        return await client.get("/v1/gaps", params={key: str(value) for key, value in query.items()})


async def test_filters_reach_the_backlog() -> None:
    backend = FakeBackend()
    assert (await get(backend)).json() == {"gaps": [], "next_cursor": None}
    await get(backend, state="resolved", reason="nothing_proven", order="most_asked", limit=7, cursor="abc")
    assert backend.gap_queries == [
        GapQuery(state=None),
        GapQuery(
            state=State.RESOLVED,
            reason=DeclineReason.NOTHING_PROVEN,
            order=Order.MOST_ASKED,
            limit=7,
            cursor="abc",
        ),
    ]


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": MAX_PAGE + 1}, {"state": "shut"}, {"reason": "x"}, {"order": "x"}, {"cursor": "x" * 129}],
)
async def test_what_is_out_of_bounds_is_refused(query: dict[str, object]) -> None:
    backend = FakeBackend()
    message = error_of(await get(backend, **query), 422, "invalid_request")
    assert next(iter(query)) in message
    assert backend.gap_queries == []


@pytest.mark.parametrize(
    ("error", "status", "retryable"),
    [(InvalidCursorError("no such cursor"), 422, False), (GapsUnavailableError("the backlog is down"), 503, True)],
)
async def test_errors_are_typed(error: InvalidCursorError, status: int, retryable: bool) -> None:
    error_of(await get(FakeBackend(error=error)), status, error.code, retryable=retryable)


async def test_pages_of_a_real_backlog(tmp_path: Path) -> None:
    store = GapStore(Database(None, home=tmp_path), GapsSettings())
    store.write([asking(f"What is {number}?", minutes=number) for number in range(5)])
    store.resolve(1, at=at(9), note="not our subject")

    class Real(FakeBackend):
        async def gaps(self, query: GapQuery, *, timeout_s: float) -> GapPage:
            return store.page(query)

    first = (await get(Real(), limit=3)).json()
    second = (await get(Real(), limit=3, cursor=first["next_cursor"])).json()
    assert [gap["id"] for gap in first["gaps"] + second["gaps"]] == [5, 4, 3, 2, 1]
    assert second["next_cursor"] is None
    closed = second["gaps"][-1]
    assert closed["state"] == "resolved"
    assert closed["resolution"]["note"] == "not our subject"
    assert closed["latest"]["passages"] == [{"id": "p0", "score": 0.81}]
    assert closed["last_seen"] == "2026-01-02T03:04:05.678000Z"
    assert [gap["id"] for gap in (await get(Real(), state="open", limit=1)).json()["gaps"]] == [5]
    store.database.close()
