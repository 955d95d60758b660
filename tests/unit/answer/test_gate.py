"""The gate under any schedule: time is virtual, so waits cost nothing and every run is the same."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.answer.drain import DrainMeter
from serving.answer.errors import OverloadedError
from serving.answer.gate import Attempt, Budget, Gate, Kind, Load, Permit, WhenAgenticIsSpent, attempts
from tests.virtual_time import run

IDLE = Load(0, 0, 0)
EASY = Budget(concurrency=4, tokens=1000, queue=4)


def gate(**budgets: Budget) -> Gate:
    return Gate({kind: budgets.get(kind.value, EASY) for kind in Kind}, asyncio.get_running_loop().time)


async def hold(gate: Gate, kind: Kind, tokens: int, seconds: float, wait_s: float = math.inf) -> None:
    async with gate.permit(kind, tokens=tokens, wait_s=wait_s):
        await asyncio.sleep(seconds)


async def until_idle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_permit_reserves_settles_and_gives_back() -> None:
    async def main() -> None:
        g = gate(single_pass=Budget(2, 100, 2))
        async with g.permit(Kind.SINGLE_PASS, tokens=80, wait_s=0) as permit:
            assert permit.kind is Kind.SINGLE_PASS
            assert g.load(Kind.SINGLE_PASS) == Load(1, 80, 0)
            permit.settle(90)
            assert permit.reserved == 80
            permit.settle(30)
            permit.settle(50)
            assert g.load(Kind.SINGLE_PASS) == Load(1, 30, 0)
            async with g.permit(Kind.SINGLE_PASS, tokens=70, wait_s=0):
                assert g.load(Kind.SINGLE_PASS) == Load(2, 100, 0)
            permit.settle(-5)
            assert g.load(Kind.SINGLE_PASS) == Load(1, 0, 0)
        permit.settle(0)
        permit.release()
        assert g.load(Kind.SINGLE_PASS) == IDLE

    run(main)


def test_settling_lets_the_next_one_in_at_once() -> None:
    async def main() -> None:
        g = gate(single_pass=Budget(2, 100, 2))
        async with g.permit(Kind.SINGLE_PASS, tokens=100, wait_s=0) as permit:
            waiting = asyncio.create_task(hold(g, Kind.SINGLE_PASS, 60, 1.0))
            await until_idle()
            assert g.load(Kind.SINGLE_PASS) == Load(1, 100, 1)
            permit.settle(40)
            assert g.load(Kind.SINGLE_PASS) == Load(2, 100, 0)
        await waiting
        assert g.load(Kind.SINGLE_PASS) == IDLE

    run(main)


def test_a_ceiling_above_the_whole_budget_is_refused_at_once() -> None:
    async def main() -> None:
        g = gate(agentic=Budget(2, 100, 2))
        with pytest.raises(OverloadedError, match="agentic budget of 100") as refused:
            async with g.permit(Kind.AGENTIC, tokens=101, wait_s=math.inf):
                pass
        assert refused.value.retry_after_s is None
        with pytest.raises(ValueError, match="negative"):
            async with g.permit(Kind.AGENTIC, tokens=-1, wait_s=0):
                pass
        assert g.load(Kind.AGENTIC) == IDLE

    run(main)


def test_a_full_queue_and_a_wait_that_is_over_are_refused() -> None:
    async def main() -> None:
        g = gate(search=Budget(1, 0, 1))
        first = asyncio.create_task(hold(g, Kind.SEARCH, 0, 100.0))
        await until_idle()
        second = asyncio.create_task(hold(g, Kind.SEARCH, 0, 1.0, wait_s=7.0))
        await until_idle()
        with pytest.raises(OverloadedError, match="queue is full") as full:
            await hold(g, Kind.SEARCH, 0, 1.0, wait_s=7.0)
        assert full.value.retry_after_s == 5.0
        with pytest.raises(OverloadedError, match="spent"):
            await hold(g, Kind.SEARCH, 0, 1.0, wait_s=0.0)
        with pytest.raises(OverloadedError, match="within 7 s"):
            await second
        assert asyncio.get_running_loop().time() == pytest.approx(7.0)
        await first
        assert g.load(Kind.SEARCH) == IDLE

    run(main)


def test_the_head_of_the_queue_is_not_passed_by_smaller_ones() -> None:
    async def main() -> None:
        g = gate(single_pass=Budget(3, 100, 5))
        order: list[str] = []

        async def call(name: str, tokens: int) -> None:
            async with g.permit(Kind.SINGLE_PASS, tokens=tokens, wait_s=math.inf):
                order.append(name)
                await asyncio.sleep(1.0)

        tasks = [
            asyncio.create_task(call(*each)) for each in (("first", 60), ("large", 90), ("small", 10), ("tiny", 1))
        ]
        await until_idle()
        assert order == ["first"]
        await asyncio.gather(*tasks)
        assert order == ["first", "large", "small", "tiny"]

    run(main)


def test_a_large_head_that_leaves_lets_the_rest_in() -> None:
    async def main() -> None:
        g = gate(single_pass=Budget(3, 100, 5))
        async with g.permit(Kind.SINGLE_PASS, tokens=60, wait_s=0):
            large = asyncio.create_task(hold(g, Kind.SINGLE_PASS, 90, 1.0))
            impatient = asyncio.create_task(hold(g, Kind.SINGLE_PASS, 95, 1.0, wait_s=5.0))
            small = asyncio.create_task(hold(g, Kind.SINGLE_PASS, 10, 1.0))
            await until_idle()
            large.cancel()
            with pytest.raises(OverloadedError):
                await impatient
            await small
            assert large.cancelled()
            assert g.load(Kind.SINGLE_PASS) == Load(1, 60, 0)

    run(main)


def test_a_flood_of_one_kind_leaves_the_others_alone() -> None:
    async def main() -> None:
        g = gate(agentic=Budget(1, 10, 50))
        flood = [asyncio.create_task(hold(g, Kind.AGENTIC, 10, 10.0)) for _ in range(40)]
        await until_idle()
        for kind in (Kind.SEARCH, Kind.SINGLE_PASS, Kind.DIRECT):
            await hold(g, kind, 100, 0.0, wait_s=0.0)
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        assert g.load(Kind.AGENTIC) == IDLE

    run(main)


def test_an_error_in_the_block_releases_and_is_not_mistaken_for_a_refusal() -> None:
    async def main() -> None:
        g = gate()
        with pytest.raises(OverloadedError, match="from the body"):
            async with g.admit(
                Kind.AGENTIC,
                ceilings={Kind.AGENTIC: 10, Kind.SINGLE_PASS: 5},
                wait_s=1.0,
                when_spent=WhenAgenticIsSpent.SINGLE_PASS,
            ):
                raise OverloadedError("from the body")
        assert g.load(Kind.AGENTIC) == IDLE
        assert g.load(Kind.SINGLE_PASS) == IDLE

    run(main)


def test_cancelled_between_grant_and_waking_gives_back() -> None:
    async def main() -> None:
        g = gate(direct=Budget(1, 10, 5))
        async with g.permit(Kind.DIRECT, tokens=10, wait_s=0):
            granted = asyncio.create_task(hold(g, Kind.DIRECT, 10, 1.0))
            behind = asyncio.create_task(hold(g, Kind.DIRECT, 10, 1.0))
            await until_idle()
        # The block's end granted the first waiter; its task has not run yet.
        assert g.load(Kind.DIRECT) == Load(1, 10, 1)
        granted.cancel()
        await behind
        assert granted.cancelled()
        assert g.load(Kind.DIRECT) == IDLE

    run(main)


def test_a_coroutine_that_is_closed_while_it_waits_leaves_the_queue() -> None:
    async def main() -> None:
        g = gate(direct=Budget(1, 10, 5))
        async with g.permit(Kind.DIRECT, tokens=10, wait_s=0):
            waiting = hold(g, Kind.DIRECT, 10, 1.0, wait_s=9.0)
            waiting.send(None)
            assert g.load(Kind.DIRECT).waiting == 1
            waiting.close()
            assert g.load(Kind.DIRECT) == Load(1, 10, 0)
        assert g.load(Kind.DIRECT) == IDLE

    run(main)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("policy", list(WhenAgenticIsSpent))
def test_the_policy_never_ends_in_bare_search(kind: Kind, policy: WhenAgenticIsSpent) -> None:
    tries = attempts(kind, policy, 3.0)
    assert tries[0].kind is kind
    assert kind is Kind.SEARCH or all(attempt.kind is not Kind.SEARCH for attempt in tries)
    if kind is not Kind.AGENTIC:
        assert tries == (Attempt(kind, 3.0),)


def test_the_policy_for_agentic_questions() -> None:
    at_once, later = Attempt(Kind.AGENTIC, 0.0), Attempt(Kind.AGENTIC, 3.0)
    assert attempts(Kind.AGENTIC, WhenAgenticIsSpent.WAIT, 3.0) == (later,)
    assert attempts(Kind.AGENTIC, WhenAgenticIsSpent.REJECT, 3.0) == (at_once,)
    assert attempts(Kind.AGENTIC, WhenAgenticIsSpent.SINGLE_PASS, 3.0) == (at_once, Attempt(Kind.SINGLE_PASS, 3.0))


def test_admit_says_what_was_granted() -> None:
    async def main() -> None:
        g = gate(agentic=Budget(1, 10, 5))
        ceilings = {Kind.AGENTIC: 10, Kind.SINGLE_PASS: 7}

        async def granted(policy: WhenAgenticIsSpent) -> tuple[Kind, int]:
            async with g.admit(Kind.AGENTIC, ceilings=ceilings, wait_s=5.0, when_spent=policy) as permit:
                return permit.kind, permit.reserved

        assert await granted(WhenAgenticIsSpent.SINGLE_PASS) == (Kind.AGENTIC, 10)
        busy = asyncio.create_task(hold(g, Kind.AGENTIC, 10, 2.0))
        await until_idle()
        assert await granted(WhenAgenticIsSpent.SINGLE_PASS) == (Kind.SINGLE_PASS, 7)
        with pytest.raises(OverloadedError, match="agentic"):
            await granted(WhenAgenticIsSpent.REJECT)
        assert await granted(WhenAgenticIsSpent.WAIT) == (Kind.AGENTIC, 10)
        await busy
        assert all(g.load(kind) == IDLE for kind in Kind)

    run(main)


def test_retry_after_is_the_backlog_over_the_measured_rate() -> None:
    async def main() -> None:
        g = gate(single_pass=Budget(1, 1000, 1))
        for _ in range(30):
            # 99 tokens and one permit in 10 s: ten units a second.
            await hold(g, Kind.SINGLE_PASS, 99, 10.0)
        await asyncio.sleep(500.0)
        holding = asyncio.create_task(hold(g, Kind.SINGLE_PASS, 199, 1.0))
        waiting = asyncio.create_task(hold(g, Kind.SINGLE_PASS, 99, 1.0))
        await until_idle()
        with pytest.raises(OverloadedError) as refused:
            await hold(g, Kind.SINGLE_PASS, 9, 1.0, wait_s=1.0)
        # Idle time does not count: 300 units at ten or a little more a second.
        assert refused.value.retry_after_s == pytest.approx(30.0, rel=0.2)
        await asyncio.gather(holding, waiting)

    run(main)


@pytest.mark.parametrize(("budget", "tokens"), [(Budget(9, 100, 9), 100), (Budget(1, 1000, 9), 100)])
def test_who_would_wait_in_vain_is_told_at_once(budget: Budget, tokens: int) -> None:
    """Whether tokens or calls are what is short: each call takes a second, and the fourth would wait for three, and
    for some times as long if these end in a bunch."""

    async def main() -> None:
        g, clock = gate(direct=budget), asyncio.get_running_loop().time
        for _ in range(9):
            await hold(g, Kind.DIRECT, tokens, 1.0)  # the pace is known from now on
        running = [asyncio.create_task(hold(g, Kind.DIRECT, tokens, 1.0)) for _ in range(3)]
        await until_idle()
        began = clock()
        with pytest.raises(OverloadedError, match=r"may not free up within 8 s") as refused:
            await hold(g, Kind.DIRECT, tokens, 1.0, wait_s=8.0)
        assert clock() == began
        assert refused.value.retry_after_s == pytest.approx(3.0, rel=0.1)
        assert g.load(Kind.DIRECT).waiting == 2
        await hold(g, Kind.DIRECT, tokens, 1.0, wait_s=10.0)
        assert clock() == began + 4.0
        await asyncio.gather(*running)

    run(main)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 1000), st.booleans()), max_size=20))
def test_the_rate_is_finite_and_zero_without_releases(events: list[tuple[float, int, bool]]) -> None:
    now = [0.0]
    meter = DrainMeter(lambda: now[0])
    assert meter.rate() == 0.0
    for pause, units, busy in events:
        now[0] += pause
        meter.released(units)
        meter.busy(busy=busy)
        assert meter.rate() >= 0.0
    if not any(units for _, units, _ in events):
        assert meter.rate() == 0.0


@pytest.mark.parametrize("per_second", [1, 20, 3000])
def test_a_steady_rate_is_measured_from_the_start_and_forgotten(per_second: int) -> None:
    now = [0.0]
    meter = DrainMeter(lambda: now[0])
    meter.busy(busy=True)
    for second in range(1, 300):
        now[0] = float(second)
        meter.released(per_second)
        if second > 20:
            assert meter.rate() == pytest.approx(per_second, rel=0.1)
    meter.busy(busy=False)
    now[0] += 10_000.0
    assert meter.rate() == pytest.approx(per_second, rel=0.1)
    meter.busy(busy=True)
    now[0] += 300.0
    assert meter.rate() < 0.01 * per_second


@pytest.mark.parametrize("wrong", [(0, 1, 1), (1, -1, 1), (1, 1, -1)])
def test_a_budget_that_makes_no_sense_is_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        Budget(*wrong)


def test_every_kind_needs_a_budget() -> None:
    with pytest.raises(ValueError, match="agentic, direct"):
        Gate({Kind.SEARCH: EASY, Kind.SINGLE_PASS: EASY}, lambda: 0.0)


CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from([Kind.SINGLE_PASS, Kind.AGENTIC]),
            "tokens": st.integers(0, 12),
            "starts": st.integers(0, 10),
            "works": st.integers(0, 6),
            "wait_s": st.sampled_from([0.0, 1.0, 3.0, math.inf]),
            "settles": st.none() | st.integers(0, 12),
            "fails": st.booleans(),
            "cancelled": st.none() | st.integers(0, 14),
        }
    ),
    max_size=14,
)


class Schedule:
    """Runs calls against a gate, checks the budgets whenever anything moved, and writes down how each one ended."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.gate = gate(single_pass=budget, agentic=budget)
        self.running: dict[int, Permit] = {}
        self.asked: dict[Kind, list[int]] = {Kind.SINGLE_PASS: [], Kind.AGENTIC: []}
        self.granted_at: dict[int, float] = {}
        self.ended: dict[int, list[str]] = {}

    def check(self) -> None:
        for kind in self.asked:
            load = self.gate.load(kind)
            mine = [permit for permit in self.running.values() if permit.kind is kind]
            assert len(mine) <= load.held <= self.budget.concurrency
            assert sum(permit.reserved for permit in mine) <= load.tokens <= self.budget.tokens
            assert 0 <= load.waiting <= self.budget.queue

    async def call(self, number: int, kind: Kind, tokens: int, works: int, wait_s: float, **more: Any) -> None:
        await asyncio.sleep(more["starts"])
        self.asked[kind].append(number)
        try:
            async with self.gate.permit(kind, tokens=tokens, wait_s=wait_s) as permit:
                self.granted_at[number] = asyncio.get_running_loop().time()
                self.ended.setdefault(number, []).append("granted")
                self.running[number] = permit
                try:
                    self.check()
                    await asyncio.sleep(works / 2)
                    if more["settles"] is not None:
                        permit.settle(more["settles"])
                        self.check()
                    await asyncio.sleep(works / 2)
                    if more["fails"]:
                        raise RuntimeError
                finally:
                    del self.running[number]
        except OverloadedError:
            self.ended.setdefault(number, []).append("refused")
        except RuntimeError:
            pass
        finally:
            self.check()


def _cancellations(calls: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    return ((number, call["cancelled"]) for number, call in enumerate(calls) if call["cancelled"] is not None)


@settings(max_examples=300)
@given(CALLS, st.builds(Budget, concurrency=st.integers(1, 3), tokens=st.integers(0, 14), queue=st.integers(0, 4)))
def test_any_schedule_keeps_the_budgets_and_ends_empty(calls: list[dict[str, Any]], budget: Budget) -> None:
    async def main() -> None:
        schedule = Schedule(budget)
        tasks = [asyncio.create_task(schedule.call(number, **call)) for number, call in enumerate(calls)]
        loop = asyncio.get_running_loop()
        for number, at in _cancellations(calls):
            loop.call_later(at, tasks[number].cancel)
        # A lost wake-up would leave a call waiting for ever, and this with it.
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for number, result in enumerate(results):
            assert result is None or isinstance(result, asyncio.CancelledError), result
            ends = schedule.ended.get(number, [])
            assert len(ends) <= 1
            if result is None:
                assert len(ends) == 1
        for kind, asked in schedule.asked.items():
            # In the instant of its grant a call that waited may wake after one that found room at once.
            moments = [schedule.granted_at[number] for number in asked if number in schedule.granted_at]
            assert moments == sorted(moments), "not first come, first served"
            assert schedule.gate.load(kind) == IDLE

    run(main)
