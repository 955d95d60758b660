"""The backlog behind a running server: it takes all at once, loses nothing it acknowledged, stays out of the way."""

from __future__ import annotations

import asyncio
import logging
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from serving.answer.gaps import GapSink, MemoryGapSink, is_gap
from serving.gaps import store as module
from serving.gaps.backlog import Backlog
from serving.gaps.database import Database
from serving.gaps.errors import GapsUnavailableError
from serving.gaps.records import RETRY_PREFIX, GapQuery
from serving.gaps.settings import GapsSettings, Questions
from serving.gaps.store import GapStore
from tests.unit.gaps.fakes import FakeEmbedder, asking, declined
from tests.unit.gateway.fakes import answered, searched

EVERY = GapQuery(state=None, limit=200)


class FakeTime:
    """A clock that sleeping moves on, at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        await asyncio.sleep(0.002)


def backlog(
    url: str, home: Path, settings: GapsSettings | None = None, embed: FakeEmbedder | None = None
) -> tuple[Backlog, FakeTime]:
    settings = settings or GapsSettings()
    clock = FakeTime()
    made = Backlog(
        GapStore(Database(url, home=home), settings),
        settings,
        embed=embed or FakeEmbedder(),
        embedder="fake",
        now=lambda: datetime.now(UTC),
        clock=clock,
        sleep=clock.sleep,
    )
    return made, clock


@pytest.fixture
async def running(url: str, tmp_path: Path) -> AsyncIterator[Backlog]:
    made, _ = backlog(url, tmp_path)
    made.start()
    yield made
    await made.close(5.0)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits for what happens behind the backlog's back."""
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110 - nobody tells when it does
            await asyncio.sleep(0.005)


async def at_once(holds: bool) -> bool:
    return holds


async def only_one(one: Backlog) -> bool:
    return len(await asked(one)) == 1


async def asked(one: Backlog) -> dict[str | None, int]:
    return {gap.question: gap.count for gap in (await one.page(EVERY)).gaps}


async def test_declines_are_kept_and_nothing_else_is(running: Backlog) -> None:
    memory = MemoryGapSink()
    sinks: list[GapSink] = [running, memory]
    for sink in sinks:
        sink.record("What does chain do?", declined())
        sink.record("What does zip do?", answered())
        sink.record("docs.example", searched())
        sink.record("What does chain do?", declined(), tenant="acme")
    await running.flush()
    gaps = (await running.page(EVERY)).gaps
    assert [(gap.question, gap.tenant) for gap in gaps] == [
        ("What does chain do?", "acme"),
        ("What does chain do?", None),
    ]
    assert [(question, tenant) for question, _, tenant in memory.gaps] == [
        (gap.question, gap.tenant) for gap in reversed(gaps)
    ]
    assert not is_gap(answered())


async def test_a_retry_that_is_declined_is_not_counted_as_asked(running: Backlog) -> None:
    running.record("What does chain do?", declined(f"{RETRY_PREFIX}1"))
    running.record("What does zip do?", declined())
    await running.flush()
    assert await asked(running) == {"What does zip do?": 1}


async def test_paraphrases_are_grouped_behind_its_back_also_after_the_embedder_was_down(
    url: str, tmp_path: Path
) -> None:
    embed = FakeEmbedder({"What does chain do?": 0, "What is chain for?": 5}, down=True)
    one, clock = backlog(url, tmp_path, embed=embed)
    one.start()
    one.record("What does chain do?", declined())
    one.record("What is chain for?", declined())
    await one.flush()
    assert await asked(one) == {"What does chain do?": 1, "What is chain for?": 1}
    await until(lambda: at_once(len(clock.slept) >= 3))
    embed.down = False
    await until(lambda: only_one(one))
    assert await asked(one) == {"What does chain do?": 2}
    await one.close(5.0)


async def test_what_an_earlier_process_left_ungrouped_is_grouped_at_the_start(url: str, tmp_path: Path) -> None:
    store = GapStore(Database(url, home=tmp_path), GapsSettings())
    store.write([asking("What does chain do?"), asking("What is chain for?")])
    store.database.close()
    one, _ = backlog(url, tmp_path, embed=FakeEmbedder({"What does chain do?": 0, "What is chain for?": 5}))
    one.start()
    await until(lambda: only_one(one))
    await one.close(5.0)


async def test_hashes_are_never_embedded(url: str, tmp_path: Path) -> None:
    embed = FakeEmbedder()
    one, _ = backlog(url, tmp_path, GapsSettings(questions=Questions.HASH), embed)
    one.start()
    for question in ("What does chain do?", "what does chain do", "What is chain for?"):
        one.record(question, declined())
    await one.flush()
    await asyncio.sleep(0.1)
    assert sorted(gap.count for gap in (await one.page(EVERY)).gaps) == [1, 2]
    assert embed.asked == []
    await one.close(5.0)


async def test_recording_never_waits_for_a_database_that_is_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").touch()  # a file where the folder should be
    one, clock = backlog(f"sqlite:///{tmp_path}/home/gaps.sqlite3", tmp_path, GapsSettings(max_waiting=3))
    with caplog.at_level(logging.WARNING):
        one.start()
        for number in range(5):
            one.record(f"What is {number}?", declined())
        assert one.dropped == 2
        await until(lambda: at_once(clock.now >= 100))
        with pytest.raises(GapsUnavailableError):
            await one.page(EVERY)
        said = [record.message for record in caplog.records if "[gaps_unavailable]" in record.message]
        assert 1 <= len(said) <= 1 + clock.now // 60  # of the many tries, one line a minute
        assert said[0].endswith("; 3 wait")
        assert sum("found no room" in record.message for record in caplog.records) == 1
    assert max(clock.slept) == 30.0
    (tmp_path / "home").unlink()
    await one.flush()
    assert await asked(one) == {"What is 0?": 1, "What is 1?": 1, "What is 2?": 1}
    await one.close(5.0)


async def test_a_locked_database_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.gaps.database.SQLITE_BUSY_S", 0.05)
    path = tmp_path / "gaps.sqlite3"
    one, clock = backlog(f"sqlite:///{path}", tmp_path)
    one.start()
    one.record("What is first?", declined())
    await one.flush()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    slept = len(clock.slept)
    one.record("What is second?", declined())
    await until(lambda: at_once(len(clock.slept) >= slept + 3))
    assert await asked(one) == {"What is first?": 1}  # it can be read meanwhile
    holder.execute("ROLLBACK")
    holder.close()
    await one.flush()
    assert await asked(one) == {"What is first?": 1, "What is second?": 1}
    await one.close(5.0)


async def test_a_full_disk_fails_no_answer_and_is_retried(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = GapsSettings()
    database = Database(f"sqlite:///{tmp_path}/gaps.sqlite3", home=tmp_path)
    clock = FakeTime()
    one = Backlog(
        GapStore(database, settings),
        settings,
        embed=FakeEmbedder(),
        embedder="fake",
        now=lambda: datetime.now(UTC),
        clock=clock,
        sleep=clock.sleep,
    )
    room = {"pages": 30}  # SQLite's own limit, which ends like a full disk: SQLITE_FULL

    @sa.event.listens_for(database._engine, "begin")
    def limit(connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count={room['pages']}")

    one.start()
    for number in range(60):
        one.record(f"What is {number}? {'x' * 1500}", declined())
    await until(lambda: at_once("full" in caplog.text))
    room["pages"] = 100_000
    await one.flush()
    assert sum((await asked(one)).values()) == 60
    await one.close(5.0)


async def test_a_row_that_the_database_refuses_is_given_up_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = module.row_of

    def row_of(one: object) -> dict[str, object]:
        row = plain(one)  # type: ignore[arg-type]
        return {**row, "request_id": None} if row["request_id"] == "poison" else row

    monkeypatch.setattr(module, "row_of", row_of)
    one, _ = backlog(f"sqlite:///{tmp_path}/gaps.sqlite3", tmp_path)
    for number, request_id in enumerate(("a", "poison", "b")):
        one.record(f"What is {number}?", declined(request_id))
    one.start()
    await one.flush()
    assert await asked(one) == {"What is 0?": 1, "What is 2?": 1}
    assert one.dropped == 1
    assert "gap_unstorable" in caplog.text
    await one.close(5.0)


async def test_two_servers_write_to_one_database(url: str, tmp_path: Path) -> None:
    servers = [backlog(url, tmp_path)[0] for _ in range(2)]
    for server in servers:
        server.start()
    for number in range(120):
        servers[number % 2].record("What do both hear?", declined())
        servers[number % 2].record(f"What is {number}?", declined())
    await asyncio.gather(*(server.flush() for server in servers))
    counts = await asked(servers[0])
    assert counts["What do both hear?"] == 120
    assert sum(counts.values()) == 240
    assert [server.dropped for server in servers] == [0, 0]
    for server in servers:
        await server.close(5.0)


async def test_closing_writes_what_waits(url: str, tmp_path: Path) -> None:
    one, _ = backlog(url, tmp_path)
    one.start()
    for number in range(300):
        one.record(f"What is {number}?", declined())
    await one.close(20.0)
    store = GapStore(Database(url, home=tmp_path), GapsSettings())
    assert len(store.page(EVERY).gaps) == 200
    with pytest.raises(GapsUnavailableError, match="closed"):
        await one.page(EVERY)
    store.database.close()


RECORDER = """
import asyncio, sys
from pathlib import Path
from tests.unit.gaps.fakes import declined
from tests.unit.gaps.test_backlog import backlog

async def main():
    one, _ = backlog(sys.argv[1], Path(sys.argv[2]))
    one.start()
    for number in range(1_000_000):
        one.record(f"What is {number}?", declined())
        if number % 3 == 0:  # others are on their way when it dies
            await one.flush()
            print(number, flush=True)

asyncio.run(main())
"""


def test_what_was_acknowledged_survives_kill_9(url: str, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", RECORDER, url, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = []
    began = time.monotonic()
    for line in process.stdout:
        acknowledged.append(int(line))
        if len(acknowledged) >= 40 or time.monotonic() - began > 60:
            process.send_signal(signal.SIGKILL)
            break
    acknowledged += [int(line) for line in process.stdout if line.endswith("\n")]
    assert process.wait() == -signal.SIGKILL
    assert len(acknowledged) >= 40
    database = Database(url, home=tmp_path)
    found, query = set(), EVERY
    while True:
        page = GapStore(database, GapsSettings()).page(query)
        found |= {gap.question for gap in page.gaps}
        if page.next_cursor is None:
            break
        query = query.model_copy(update={"cursor": page.next_cursor})
    database.close()
    assert {f"What is {number}?" for number in range(acknowledged[-1] + 1)} <= found
