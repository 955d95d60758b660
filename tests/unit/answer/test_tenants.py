"""Limits by tenant, on virtual time: whatever one does, the others and the whole keep what is theirs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.answer.errors import OverloadedError
from serving.answer.gate import Budget, Gate, Kind, Load
from serving.answer.tenants import TenantLanes
from tests.virtual_time import run

IDLE = Load(0, 0, 0)
WHOLE = Budget(concurrency=4, tokens=100, queue=50)
SHARE = Budget(concurrency=2, tokens=40, queue=10)


def gate(whole: Budget = WHOLE, share: Budget = SHARE) -> Gate:
    clock = asyncio.get_running_loop().time
    return Gate(dict.fromkeys(Kind, whole), clock, tenants={Kind.DIRECT: share})


async def hold(gate: Gate, tenant: str | None, tokens: int, seconds: float, wait_s: float = 1e3) -> float:
    """Holds a permit for ``seconds``. Returns when it was granted."""
    async with gate.permit(Kind.DIRECT, tokens=tokens, wait_s=wait_s, tenant=tenant):
        granted = asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        return granted


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def test_a_tenants_flood_waits_for_itself_alone() -> None:
    async def main() -> None:
        g = gate()
        flood = [asyncio.create_task(hold(g, "loud", 10, 5.0)) for _ in range(8)]
        await settle()
        assert g.load(Kind.DIRECT, tenant="loud") == Load(2, 20, 6)
        assert g.load(Kind.DIRECT) == Load(2, 20, 0)
        assert await hold(g, "quiet", 10, 1.0, wait_s=0.0) == 0.0
        assert await hold(g, None, 60, 1.0, wait_s=0.0) == 1.0  # nobody's in particular: the whole is its bound
        await asyncio.gather(*flood)
        assert asyncio.get_running_loop().time() == pytest.approx(20.0)
        assert g.load(Kind.DIRECT) == g.load(Kind.DIRECT, tenant="loud") == IDLE

    run(main)


def test_both_are_settled_and_given_back() -> None:
    async def main() -> None:
        g = gate()
        async with g.permit(Kind.DIRECT, tokens=40, wait_s=0, tenant="a") as permit:
            with pytest.raises(OverloadedError, match="the tenant's direct budget is spent") as refused:
                await hold(g, "a", 1, 0.0, wait_s=0.0)
            assert refused.value.retry_after_s is not None
            assert (refused.value.status, refused.value.retryable) == (429, True)
            permit.settle(15)
            assert g.load(Kind.DIRECT) == g.load(Kind.DIRECT, tenant="a") == Load(1, 15, 0)
            await hold(g, "a", 25, 0.0, wait_s=0.0)
        assert g.load(Kind.DIRECT) == g.load(Kind.DIRECT, tenant="a") == IDLE

    run(main)


def test_a_tenant_gets_nothing_when_the_whole_has_nothing() -> None:
    async def main() -> None:
        g = gate()
        busy = [asyncio.create_task(hold(g, None, 25, 9.0)) for _ in range(4)]
        await settle()
        with pytest.raises(OverloadedError, match="the direct budget"):
            await hold(g, "a", 10, 1.0, wait_s=2.0)
        assert g.load(Kind.DIRECT, tenant="a") == IDLE
        left = asyncio.create_task(hold(g, "a", 10, 1.0))
        await settle()
        assert g.load(Kind.DIRECT, tenant="a") == Load(1, 10, 0)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        assert g.load(Kind.DIRECT, tenant="a") == IDLE
        await asyncio.gather(*busy)

    run(main)


def test_the_wait_is_one_for_both() -> None:
    async def main() -> None:
        g = gate(share=Budget(1, 100, 10))
        asyncio.create_task(hold(g, "a", 10, 4.0))  # noqa: RUF006 - ends by itself
        busy = [asyncio.create_task(hold(g, None, 30, 100.0)) for _ in range(3)]
        await settle()
        with pytest.raises(OverloadedError):
            await hold(g, "a", 11, 1.0, wait_s=6.0)  # one token too many: at the pace so far, worth waiting for
        assert asyncio.get_running_loop().time() == pytest.approx(6.0)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)

    run(main)


def test_idle_tenants_are_forgotten_and_busy_ones_are_not() -> None:
    async def main() -> None:
        lanes = TenantLanes(Kind.DIRECT, SHARE, asyncio.get_running_loop().time, kept=3)
        permit = await lanes.lane("busy").acquire(5, 0.0)
        for number in range(50):
            lanes.lane(f"t{number}")
        assert len(lanes) == 3
        assert lanes.load("busy") == Load(1, 5, 0)
        assert lanes.load("t0") == IDLE
        permit.release()
        for number in range(3):
            lanes.lane(f"t{number}")
        assert lanes.load("busy") == IDLE

    run(main)


CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "tenant": st.sampled_from(["a", "b", "c", None]),
            "tokens": st.integers(0, 12),
            "starts": st.integers(0, 8),
            "works": st.integers(0, 5),
            "wait_s": st.sampled_from([0.0, 1.0, 3.0, 1e4]),
            "settles": st.none() | st.integers(0, 12),
            "cancelled": st.none() | st.integers(0, 12),
        }
    ),
    max_size=14,
)
BUDGETS = st.builds(Budget, concurrency=st.integers(1, 3), tokens=st.integers(0, 14), queue=st.integers(0, 4))


@settings(max_examples=200)
@given(CALLS, BUDGETS, BUDGETS)
def test_any_schedule_keeps_both_budgets_and_ends_empty(
    calls: list[dict[str, Any]], whole: Budget, share: Budget
) -> None:
    async def main() -> None:
        g = gate(whole, share)

        def check() -> None:
            for load, budget in [
                (g.load(Kind.DIRECT), whole),
                *((g.load(Kind.DIRECT, tenant=t), share) for t in "abc"),
            ]:
                assert load.held <= budget.concurrency
                assert load.tokens <= budget.tokens
                assert load.waiting <= budget.queue

        async def call(tenant: str | None, tokens: int, works: int, wait_s: float, **more: Any) -> None:
            await asyncio.sleep(more["starts"])
            try:
                async with g.permit(Kind.DIRECT, tokens=tokens, wait_s=wait_s, tenant=tenant) as permit:
                    check()
                    await asyncio.sleep(works / 2)
                    if more["settles"] is not None:
                        permit.settle(more["settles"])
                    await asyncio.sleep(works / 2)
            except OverloadedError:
                pass
            finally:
                check()

        tasks = [asyncio.create_task(call(**one)) for one in calls]
        for task, one in zip(tasks, calls, strict=True):
            if one["cancelled"] is not None:
                asyncio.get_running_loop().call_later(one["cancelled"], task.cancel)
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, asyncio.CancelledError), result
        assert g.load(Kind.DIRECT) == IDLE
        assert all(g.load(Kind.DIRECT, tenant=tenant) == IDLE for tenant in "abc")

    run(main)
