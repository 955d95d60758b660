"""Replacing what replies are made with while they are being made, in every order that a loop can give."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.swapping import BusyError, Swap


@dataclass
class FakeEngine:
    """Weights that are overwritten in place: what a reply reads is what is there at that moment."""

    weights: str = "0"
    readers: int = 0
    overwritten_under_a_reader: bool = False
    fail: bool = False
    written: list[tuple[str, list[str]]] = field(default_factory=list)

    async def overwrite(self, new: str) -> None:
        for _ in range(3):
            self.overwritten_under_a_reader |= self.readers > 0
            await asyncio.sleep(0)
        if self.fail:
            raise ValueError("will not load")
        self.weights = new

    async def reply(self, swap: Swap[str], tokens: int) -> None:
        async with swap.use() as name:
            self.readers += 1
            try:
                read = []
                for _ in range(tokens):
                    read.append(self.weights)
                    await asyncio.sleep(0)
                self.written.append((name, read))
            finally:
                self.readers -= 1


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


Happening = st.tuples(st.sampled_from(["reply", "cancelled", "exchange", "failing"]), st.integers(0, 6))


@given(happenings=st.lists(Happening, max_size=14))
@settings(max_examples=200, deadline=None)
def test_no_reply_reads_two_weights_or_others_than_it_says(happenings: list[tuple[str, int]]) -> None:
    async def run() -> None:
        engine, swap, tasks, asked = FakeEngine(), Swap("0"), list[asyncio.Task[None]](), 0

        async def exchange(new: str, *, failing: bool) -> None:
            async def change() -> None:
                engine.fail = failing
                await engine.overwrite(new)

            with contextlib.suppress(ValueError):
                await swap.exchange(new, change, patience_s=60)

        for number, (kind, wait) in enumerate(happenings, start=1):
            if kind in ("reply", "cancelled"):
                task = asyncio.create_task(engine.reply(swap, wait + 1))
            else:
                task = asyncio.create_task(exchange(str(number), failing=kind == "failing"))
            asked += kind == "reply"
            tasks.append(task)
            await steps(wait)
            if kind == "cancelled":
                task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)
        assert not engine.overwritten_under_a_reader
        assert all(read == [name] * len(read) for name, read in engine.written)
        assert len(engine.written) >= asked
        assert swap.current == engine.weights
        done = [number for number, (kind, _) in enumerate(happenings, start=1) if kind == "exchange"]
        assert swap.current == str(done[-1] if done else 0)

    asyncio.run(run())


@given(happenings=st.lists(st.tuples(st.sampled_from(["reply", "hand over"]), st.integers(0, 6)), max_size=14))
@settings(max_examples=200, deadline=None)
def test_nothing_is_retired_while_it_is_used_and_nothing_waits(happenings: list[tuple[str, int]]) -> None:
    async def run() -> None:
        swap, retired, tasks = Swap(0), list[int](), list[asyncio.Task[None]]()

        async def retire(old: int) -> None:
            retired.append(old)

        async def reply(tokens: int) -> None:
            began = swap.current
            async with swap.use() as held:
                assert held == began
                for _ in range(tokens):
                    await asyncio.sleep(0)
                    assert held not in retired

        for number, (kind, wait) in enumerate(happenings, start=1):
            work = reply(wait + 1) if kind == "reply" else swap.hand_over(number, retire)
            tasks.append(asyncio.create_task(work))
            await steps(wait)
        await asyncio.wait_for(asyncio.gather(*tasks), 5)
        handed = [number for number, (kind, _) in enumerate(happenings, start=1) if kind == "hand over"]
        assert [*retired, swap.current] == [0, *handed]

    asyncio.run(run())


async def test_replies_that_do_not_end_leave_the_old_in_use_and_nothing_is_held_up() -> None:
    swap, changed = Swap("old"), False

    async def change() -> None:
        nonlocal changed
        changed = True

    async with swap.use():
        with pytest.raises(BusyError, match="quieter"):
            await swap.exchange("new", change, patience_s=0.01)
        async with asyncio.timeout(5), swap.use() as held:
            assert held == "old"
    assert not changed
    await swap.exchange("new", change, patience_s=0.01)
    assert swap.current == "new"


async def test_those_that_come_during_an_exchange_wait_and_get_the_new() -> None:
    swap, loading = Swap("old"), asyncio.Event()

    async def use() -> str:
        async with swap.use() as held:
            return held

    async def load() -> None:
        await loading.wait()

    exchange = asyncio.create_task(swap.exchange("new", load, patience_s=5))
    await steps(3)
    late = asyncio.create_task(use())
    await steps(3)
    assert not late.done()
    loading.set()
    await exchange
    assert await late == "new"
