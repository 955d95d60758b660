"""The store over each database: what is written comes back, counted, bounded, paged, closed and reopened."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from serving.answer.types import DeclineReason, RefusalCause, Route
from serving.answer.wire import Versions
from serving.gaps.database import Database
from serving.gaps.errors import InvalidCursorError, UnknownGapError
from serving.gaps.likeness import question_hash
from serving.gaps.records import GapQuery, Order, PassageRef, State
from serving.gaps.schema import askings
from serving.gaps.settings import GapsSettings, Questions
from serving.gaps.store import GapStore
from tests.unit.gaps.fakes import asking, at, declined

EVERY = GapQuery(state=None, limit=200)


def questions(store: GapStore, query: GapQuery = EVERY) -> list[str | None]:
    return [gap.question for gap in store.page(query).gaps]


def test_what_is_written_comes_back_whole(store: GapStore) -> None:
    refused = declined("r7", reason=DeclineReason.REFUSED, cause=RefusalCause.UNGROUNDED, scores=(0.25, 0.75))
    store.write([asking("What does chain do?", answer=refused, tenant="acme")])
    (gap,) = store.page(GapQuery()).gaps
    assert (gap.question, gap.question_hash) == ("What does chain do?", question_hash("what does chain do"))
    assert (gap.state, gap.tenant, gap.count, gap.resolution) == (State.OPEN, "acme", 1, None)
    assert gap.first_seen == gap.last_seen == at(0)
    last = gap.latest
    assert last is not None
    assert (last.request_id, last.reason, last.cause) == ("r7", DeclineReason.REFUSED, RefusalCause.UNGROUNDED)
    assert (last.route_chosen, last.route_ran) == (Route.AGENTIC, Route.SINGLE_PASS)
    assert last.versions == Versions(settings="s1", index="generation-1")
    assert last.passages == (PassageRef(id="p1", score=0.75), PassageRef(id="p0", score=0.25))
    assert store.show(gap.id) == (gap, [last])


def test_equal_questions_are_one_gap_however_they_are_spelled(store: GapStore) -> None:
    store.write([asking("What does chain do?"), asking("  what DOES chain   do", minutes=3)])
    store.write([asking("What does chain do??", minutes=5), asking("What does zip do?", minutes=6)])
    store.write([asking("What does chain do?", minutes=7, tenant="acme")])
    gaps = {(gap.question, gap.tenant): gap for gap in store.page(EVERY).gaps}
    assert {key: gap.count for key, gap in gaps.items()} == {
        ("What does chain do?", None): 3,
        ("What does zip do?", None): 1,
        ("What does chain do?", "acme"): 1,
    }
    gap = gaps["What does chain do?", None]
    assert (gap.first_seen, gap.last_seen) == (at(0), at(5))
    assert [one.question for one in store.show(gap.id)[1]] == [
        "What does chain do??",
        "  what DOES chain   do",
        "What does chain do?",
    ]


def test_a_batch_written_twice_is_counted_once(store: GapStore) -> None:
    batch = [asking("What does chain do?"), asking("What does zip do?")]
    store.write(batch)
    store.write([*batch, asking("What does map do?")])
    assert [(gap.question, gap.count) for gap in store.page(EVERY).gaps] == [
        ("What does map do?", 1),
        ("What does zip do?", 1),
        ("What does chain do?", 1),
    ]


def test_what_no_database_takes_is_written_all_the_same(store: GapStore) -> None:
    store.write([asking("nul \0 and \ud800 surrogate", answer=declined("\0"), tenant="\udfff")])
    (gap,) = store.page(EVERY).gaps
    assert gap.question == "nul \ufffd and ? surrogate"


def test_only_the_hash_is_kept_where_that_is_set(store: GapStore) -> None:
    hashed = GapsSettings(questions=Questions.HASH)
    store.write([asking("What does chain do?", settings=hashed), asking("what does chain do", settings=hashed)])
    (gap,) = store.page(EVERY).gaps
    assert (gap.question, gap.question_hash, gap.count) == (None, question_hash("What does chain do?"), 2)
    assert [one.question for one in store.show(gap.id)[1]] == [None, None]
    assert store.to_retry(None, limit=10) == []
    assert store.to_retry([gap.id], limit=10) == [(gap.id, None)]


def test_rows_are_bounded(store: GapStore) -> None:
    small = GapsSettings(max_question_chars=10, max_passages=2)
    answer = declined("r" * 5000, scores=(0.1, 0.9, 0.5)).model_copy(update={"versions": Versions(index="x" * 5000)})
    store.write([asking("What does chain do?", answer=answer, tenant="t" * 5000, settings=small)])
    (gap,) = store.page(EVERY).gaps
    assert gap.question == "What does "
    assert gap.question_hash == question_hash("What does chain do?")
    assert gap.latest is not None
    assert [passage.score for passage in gap.latest.passages] == [0.9, 0.5]
    assert len(gap.model_dump_json()) < 2_000


@pytest.mark.parametrize("settings", [GapsSettings(max_gaps=3, max_askings=2)])
def test_the_longest_resolved_make_room_first_and_then_the_oldest(store: GapStore, database: Database) -> None:
    for number, name in enumerate("abc"):
        store.write([asking(f"What is {name}?", minutes=number)])
    ids = {gap.question: gap.id for gap in store.page(EVERY).gaps}
    store.resolve(ids["What is c?"], at=at(10))
    store.resolve(ids["What is b?"], at=at(20))
    store.write([asking("What is d?", minutes=30)])
    assert questions(store) == ["What is d?", "What is b?", "What is a?"]
    store.write([asking("What is e?", minutes=31)])
    assert questions(store) == ["What is e?", "What is d?", "What is a?"]
    store.write([asking("What is a?", minutes=40)])  # asked again: not the oldest any more
    store.write([asking("What is f?", minutes=41)])
    assert questions(store) == ["What is f?", "What is e?", "What is a?"]
    store.write([asking("What is f?", minutes=42 + minute) for minute in range(9)])
    assert store.page(EVERY).gaps[0].count == 10
    with database.reading() as connection:
        kept = connection.execute(sa.select(sa.func.count()).select_from(askings)).scalar_one()
    assert kept == 2 + 1 + 2  # of f, e and a: what was removed took its askings along


def test_filters(store: GapStore) -> None:
    nothing = declined(reason=DeclineReason.NOTHING_RETRIEVED)
    store.write([asking("What is a?"), asking("What is b?", answer=nothing), asking("What is c?", answer=nothing)])
    last = store.page(EVERY).gaps[0]
    store.resolve(last.id, at=at(1), note="out of scope")
    assert questions(store, GapQuery()) == ["What is b?", "What is a?"]
    assert questions(store, GapQuery(state=State.RESOLVED)) == ["What is c?"]
    assert questions(store, GapQuery(state=None, reason=DeclineReason.NOTHING_RETRIEVED)) == [
        "What is c?",
        "What is b?",
    ]
    assert questions(store, GapQuery(reason=DeclineReason.REFUSED)) == []


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_pages_hold_every_gap_once(store: GapStore, order: Order, limit: int) -> None:
    for number in range(7):
        store.write([asking(f"What is number {number}?", minutes=minute) for minute in range(1 + number % 3)])
    seen, query = [], GapQuery(order=order, limit=limit)
    while True:
        page = store.page(query)
        assert 1 <= len(page.gaps) <= limit
        seen += page.gaps
        if page.next_cursor is None:
            break
        if order is Order.NEWEST:
            store.write([asking(f"What is new {len(seen)}?")])  # what comes meanwhile disturbs nothing
        query = query.model_copy(update={"cursor": page.next_cursor})
    assert len({gap.id for gap in seen}) == len(seen) == 7
    keys = [gap.id if order is Order.NEWEST else (gap.count, gap.id) for gap in seen]
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize("cursor", ["", "x", "bmV3ZXN0", "bmV3ZXN0OjE6Mg", "bW9zdF9hc2tlZDoxOjI", "bmV3ZXN0Oi0x", "é"])
def test_a_cursor_of_another_order_or_of_nobody_is_refused(store: GapStore, cursor: str) -> None:
    with pytest.raises(InvalidCursorError, match="leave it out"):
        store.page(GapQuery(cursor=cursor))


def test_a_persons_resolution_stands_and_can_be_undone(store: GapStore) -> None:
    store.write([asking("What is a?")])
    (gap,) = store.page(EVERY).gaps
    store.resolve(gap.id, at=at(5), note="not our subject")
    store.write([asking("What is a?", minutes=9)])
    closed, kept = store.show(gap.id)
    assert (closed.state, closed.count, closed.last_seen, len(kept)) == (State.RESOLVED, 2, at(9), 2)
    assert closed.resolution is not None
    assert (closed.resolution.at, closed.resolution.note) == (at(5), "not our subject")
    assert closed.resolution.answered_versions is None
    store.reopen(gap.id)
    assert store.show(gap.id)[0].resolution is None


def test_what_an_answer_closed_opens_again_when_it_is_declined_again(store: GapStore) -> None:
    store.write([asking("What is a?")])
    (gap,) = store.page(EVERY).gaps
    store.resolve(gap.id, at=at(5), answered_request_id="r9", answered_versions=Versions(index="generation-2"))
    resolution = store.show(gap.id)[0].resolution
    assert resolution is not None
    assert (resolution.answered_request_id, resolution.answered_versions) == ("r9", Versions(index="generation-2"))
    store.write([asking("What is a?", minutes=9)])
    assert store.show(gap.id)[0].resolution is None


def test_unknown_gaps_are_named(store: GapStore) -> None:
    for act in (store.show, store.reopen, lambda gap_id: store.resolve(gap_id, at=at(0))):
        with pytest.raises(UnknownGapError, match="no gap 7"):
            act(7)
    with pytest.raises(UnknownGapError, match="no gap 7, 8"):
        store.to_retry([8, 7], limit=10)


def test_those_not_retried_yet_come_first_then_the_most_asked(store: GapStore) -> None:
    store.write([asking("What is a?"), asking("What is b?"), asking("What is b?"), asking("What is c?")])
    ids = {gap.question: gap.id for gap in store.page(EVERY).gaps}
    assert [question for _, question in store.to_retry(None, limit=2)] == ["What is b?", "What is a?"]
    store.retried(ids["What is b?"], at=at(2))
    store.retried(ids["What is a?"], at=at(1))
    assert [question for _, question in store.to_retry(None, limit=9)] == ["What is c?", "What is a?", "What is b?"]


def test_processes_that_write_at_once_lose_nothing(url: str, tmp_path: Path) -> None:
    """Two databases on one URL are what two Routers have."""
    failed = []

    def write(name: str) -> None:
        store = GapStore(Database(url, home=tmp_path), GapsSettings())
        try:
            for number in range(25):
                store.write([asking("What is asked by both?"), asking(f"What is {name} {number}?")])
        except Exception as error:
            failed.append(error)
        finally:
            store.database.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    gaps = GapStore(Database(url, home=tmp_path), GapsSettings()).page(EVERY).gaps
    assert len(gaps) == 51
    assert {gap.count for gap in gaps if gap.question == "What is asked by both?"} == {50}
