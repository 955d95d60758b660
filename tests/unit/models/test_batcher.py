"""The batcher under any schedule: time is virtual, and the device is scripted."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.batcher.batcher import Batcher, Wanted
from models.batcher.forming import choose
from serving.answer.errors import DeadlineExceededError, UnavailableError
from serving.answer.types import Deadline
from tests.virtual_time import run

BUDGET = 64


@dataclass(frozen=True)
class FakeRow:
    """``bad`` rows fail whatever pass they are in."""

    name: int
    length: int
    bad: bool = False


class FakeDevice:
    """Takes a second for each 10 padded tokens, one pass after the other, and answers a row with its name."""

    def __init__(self) -> None:
        self.passes: list[list[FakeRow]] = []
        self.error: BaseException | None = None
        self.stuck = False
        self._free = asyncio.Lock()

    async def compute(self, rows: list[FakeRow], wanted: Wanted) -> Sequence[int]:
        async with self._free:
            if not wanted():
                return []
            self.passes.append(rows)
            await asyncio.sleep(1e9 if self.stuck else max(row.length for row in rows) * len(rows) / 10)
            if self.error:
                raise self.error
            if any(row.bad for row in rows):
                raise RuntimeError("a bad row")
            return [row.name for row in rows]


def clock() -> float:
    return asyncio.get_running_loop().time()


def batcher_on(device: FakeDevice, **options: Any) -> Batcher[FakeRow, int]:
    return Batcher("fake", device.compute, **{"budget": BUDGET, "clock": clock, "window": 16, **options})


def rows(*lengths: int, start: int = 0, bad: bool = False) -> list[FakeRow]:
    return [FakeRow(start + number, length, bad) for number, length in enumerate(lengths)]


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


# Forming


@given(st.lists(st.integers(1, 100), min_size=1, max_size=60), st.integers(1, 400), st.integers(0, 50))
def test_a_pass_holds_the_oldest_row_and_keeps_the_budget(lengths: list[int], budget: int, launch: int) -> None:
    chosen = choose(lengths, budget, launch)
    assert len(set(chosen)) == len(chosen)
    assert 0 in chosen
    assert len(chosen) == 1 or len(chosen) * max(lengths[index] for index in chosen) <= budget
    taken = sorted(lengths[index] for index in chosen)
    inside = [length for length in lengths if taken[0] < length < taken[-1]]
    assert len(inside) <= len(taken), "a run of neighbours has no gaps"


def test_short_rows_do_not_ride_with_one_long_row() -> None:
    assert choose([512, *([10] * 15)], 8192, 64) == [0]
    assert sorted(choose([10, 512, *([10] * 15)], 8192, 64)) == [0, *range(2, 17)]


def test_a_pass_of_equal_rows_is_full() -> None:
    assert len(choose([8] * 100, 64, 4)) == 8


# One request


def test_results_come_in_order_and_the_time_is_accounted_for() -> None:
    async def main() -> None:
        device = FakeDevice()
        asked = rows(30, 1, 20, 2, 31, 3)
        done = await batcher_on(device).submit(asked)
        assert done.results == list(range(6))
        assert len(device.passes) > 1
        phases = done.phases
        assert phases.tokens == 87
        assert phases.padded_tokens == sum(len(batch) * max(row.length for row in batch) for batch in device.passes)
        assert phases.compute_s == pytest.approx(phases.padded_tokens / 10) == pytest.approx(phases.total_s)
        assert phases.queue_s == pytest.approx(0.0)

    run(main)


def test_nothing_asked_is_nothing_done() -> None:
    async def main() -> None:
        device = FakeDevice()
        assert (await batcher_on(device).submit([])).results == []
        assert device.passes == []

    run(main)


def test_a_pass_is_formed_when_the_device_frees_up() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        first = asyncio.create_task(batcher.submit(rows(10)))
        await settle()
        later = [asyncio.create_task(batcher.submit(rows(5, start=number))) for number in range(1, 6)]
        await settle()
        assert [len(batch) for batch in device.passes] == [1]
        waited = [(await task).phases for task in later]
        assert [len(batch) for batch in device.passes] == [1, 5]
        assert all(phases.queue_s == pytest.approx(1.0) for phases in waited)
        assert (await first).phases.queue_s == 0.0

    run(main)


def test_who_submits_in_one_turn_shares_a_pass() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        done = await asyncio.gather(*(batcher.submit(rows(4, start=number)) for number in range(6)))
        assert [one.results for one in done] == [[number] for number in range(6)]
        assert [len(batch) for batch in device.passes] == [6]

    run(main)


def test_only_a_full_pass_is_handed_over_early() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        tasks = [asyncio.create_task(batcher.submit(rows(*[8] * 30)))]
        await settle()
        assert batcher.queued_tokens == 14 * 8  # one pass runs, one is ready, and no more is handed over
        tasks.append(asyncio.create_task(batcher.submit(rows(*[8] * 2))))
        await asyncio.gather(*tasks)
        assert [len(batch) for batch in device.passes] == [8, 8, 8, 8]
        assert batcher.totals.padded_tokens == batcher.totals.tokens == 32 * 8
        assert (batcher.totals.passes, batcher.totals.rows) == (4, 32)

    run(main)


def test_a_row_longer_than_the_budget_goes_alone() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        await asyncio.gather(batcher.submit(rows(3, 500, 3)), batcher.submit(rows(4, start=9)))
        assert [row.length for row in next(batch for batch in device.passes if batch[0].length == 500)] == [500]

    run(main)


# What goes wrong


def test_a_bad_row_fails_its_request_and_no_other() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        good = [batcher.submit(rows(4, 4, start=10 * number)) for number in range(5)]
        bad = batcher.submit([*rows(4), *rows(4, bad=True), *rows(4)])
        *fine, failed = await asyncio.gather(*good, bad, return_exceptions=True)
        assert [one.results for one in fine] == [[10 * number, 10 * number + 1] for number in range(5)]  # type: ignore[union-attr]
        assert isinstance(failed, UnavailableError)
        assert "RuntimeError" in failed.message
        assert not batcher.stalled

    run(main)


def test_a_device_that_is_gone_fails_everybody_at_once() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        device.error = UnavailableError("The GPU is lost.")
        failed = await asyncio.gather(*(batcher.submit(rows(4)) for _ in range(8)), return_exceptions=True)
        assert [str(error) for error in failed] == ["The GPU is lost."] * 8
        assert len(set(map(id, failed))) == 8
        assert len(device.passes) == 1
        assert batcher.stalled
        device.error = None
        await batcher.submit(rows(4))
        assert not batcher.stalled

    run(main)


def test_a_pass_with_too_few_results_is_an_error() -> None:
    async def main() -> None:
        async def compute(rows: list[FakeRow], wanted: Wanted) -> list[int]:
            return [1, 2, 3]

        with pytest.raises(UnavailableError, match="ValueError"):
            await Batcher("fake", compute, budget=BUDGET, clock=clock).submit(rows(4))

    run(main)


def test_a_cancelled_request_gets_no_pass_that_has_not_begun() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        task = asyncio.create_task(batcher.submit(rows(*[8] * 80)))
        other = asyncio.create_task(batcher.submit(rows(7, start=500)))
        await asyncio.sleep(1.0)
        assert len(device.passes) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert batcher.queued_tokens == 7
        assert (await other).results == [500]
        assert [[row.name for row in batch] for batch in device.passes[1:]] == [[500]]

    run(main)


def test_a_deadline_that_passes_ends_the_request_there_and_then() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        first = asyncio.create_task(batcher.submit(rows(60)))
        await settle()
        with pytest.raises(DeadlineExceededError, match="fake"):
            await batcher.submit(rows(8, 8), deadline=Deadline.after(2.0, clock))
        assert clock() == pytest.approx(2.0)
        assert batcher.queued_tokens == 0
        await first
        assert len(device.passes) == 1
        with pytest.raises(DeadlineExceededError):
            await batcher.submit(rows(8), deadline=Deadline.after(0.0, clock))

    run(main)


def test_what_is_late_when_a_pass_is_formed_is_dropped_with_its_siblings() -> None:
    """The loop may be busy when a timer is due: the clock decides."""

    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        skew = [0.0]
        deadline = Deadline.after(50.0, lambda: clock() + skew[0])
        first = asyncio.create_task(batcher.submit(rows(10)))
        await settle()
        late = asyncio.create_task(batcher.submit(rows(*[4] * 40, start=100), deadline=deadline))
        fine = asyncio.create_task(batcher.submit(rows(4, start=7)))
        await settle()
        skew[0] = 100.0
        _, ended, done = await asyncio.gather(first, late, fine, return_exceptions=True)
        assert isinstance(ended, DeadlineExceededError)
        assert done.results == [7]  # type: ignore[union-attr]
        handed_over = 16  # the full pass that was ready
        assert sum(row.name >= 100 for batch in device.passes for row in batch) <= handed_over

    run(main)


def test_it_is_unhealthy_when_work_is_there_and_nothing_comes_of_it() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device, patience_s=30.0)
        await asyncio.sleep(1000.0)
        assert not batcher.stalled, "idle time is not silence"
        device.stuck = True
        for _ in range(7):  # callers that give up are no progress
            with pytest.raises(DeadlineExceededError):
                await batcher.submit(rows(5), deadline=Deadline.after(5.0, clock))
        assert batcher.silent_s() == pytest.approx(35.0)
        assert batcher.stalled

    run(main)


def test_closing_fails_what_waits_and_takes_nothing_more() -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device)
        running = asyncio.create_task(batcher.submit(rows(10)))
        await settle()
        waiting = asyncio.create_task(batcher.submit(rows(10)))
        await settle()
        batcher.close()
        with pytest.raises(UnavailableError, match="closed"):
            await waiting
        assert (await running).results == [0]
        with pytest.raises(UnavailableError, match="closed"):
            await batcher.submit(rows(1))

    run(main)


def test_it_serves_one_loop_after_another() -> None:
    async def compute(rows: list[FakeRow], wanted: Wanted) -> list[int]:
        await asyncio.sleep(0.001 if rows[0].length < 50 else 100)
        return [row.name for row in rows]

    batcher = Batcher("fake", compute, budget=BUDGET, clock=time.monotonic)

    async def left() -> None:
        task = asyncio.create_task(batcher.submit(rows(60)))
        await asyncio.sleep(0.01)
        assert not task.done()

    asyncio.run(left())
    for _ in range(2):
        assert asyncio.run(batcher.submit(rows(1, 2))).results == [0, 1]


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"window": 0}, {"ahead": -1}])
def test_sizes_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        Batcher("fake", None, **{"budget": 1, "clock": time.monotonic, **wrong})  # type: ignore[arg-type]


# Any schedule

REQUESTS = st.lists(
    st.fixed_dictionaries(
        {
            "lengths": st.lists(st.integers(1, 80), min_size=1, max_size=12),
            "bad": st.none() | st.integers(0, 11),
            "starts": st.integers(0, 30),
            "within": st.none() | st.integers(0, 40),
            "cancelled": st.none() | st.integers(0, 60),
        }
    ),
    max_size=12,
)


@settings(max_examples=200)
@given(REQUESTS, st.integers(1, 20), st.integers(0, 1))
def test_every_request_ends_once_and_rightly(requests: list[dict[str, Any]], window: int, ahead: int) -> None:
    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device, window=window, ahead=ahead)

        async def ask(number: int, request: dict[str, Any]) -> list[int]:
            await asyncio.sleep(request["starts"])
            asked = [
                FakeRow(100 * number + index, length, bad=index == request["bad"])
                for index, length in enumerate(request["lengths"])
            ]
            within = request["within"]
            return (
                await batcher.submit(asked, deadline=None if within is None else Deadline.after(within, clock))
            ).results

        tasks = [asyncio.create_task(ask(number, request)) for number, request in enumerate(requests)]
        for task, request in zip(tasks, requests, strict=True):
            if request["cancelled"] is not None:
                asyncio.get_running_loop().call_later(request["cancelled"], task.cancel)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for number, (request, end) in enumerate(zip(requests, ended, strict=True)):
            has_bad = request["bad"] is not None and request["bad"] < len(request["lengths"])
            if isinstance(end, list):
                assert end == [100 * number + index for index in range(len(request["lengths"]))]
                assert not has_bad
            elif isinstance(end, UnavailableError):
                assert has_bad
            elif isinstance(end, DeadlineExceededError):
                assert request["within"] is not None
            else:
                assert isinstance(end, asyncio.CancelledError)
                assert request["cancelled"] is not None
        for batch in device.passes:
            assert len(batch) == 1 or len(batch) * max(row.length for row in batch) <= BUDGET
        fine = Counter(row.name for batch in device.passes if not any(row.bad for row in batch) for row in batch)
        assert max(fine.values(), default=0) <= 1, "a row is computed once"
        assert batcher.queued_tokens == 0
        assert batcher.silent_s() == 0.0 or batcher._passes

    run(main)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 60))
def test_nothing_starves_while_others_keep_coming(flood: list[int], length: int) -> None:
    """However the newcomers' lengths are chosen, a row waits at most for the rows before it."""

    async def main() -> None:
        device = FakeDevice()
        batcher = batcher_on(device, window=8)
        first = asyncio.create_task(batcher.submit(rows(*[60] * 3)))
        await settle()
        victim = asyncio.create_task(batcher.submit(rows(length, start=999)))

        async def newcomers() -> None:
            while not victim.done():
                await asyncio.gather(*(batcher.submit(rows(each, start=1)) for each in flood))

        others = [asyncio.create_task(newcomers()) for _ in range(3)]
        await victim
        turn = next(number for number, batch in enumerate(device.passes) if any(row.name == 999 for row in batch))
        assert turn <= 3
        for task in (first, *others):
            task.cancel()
        await asyncio.gather(first, *others, return_exceptions=True)

    run(main)
