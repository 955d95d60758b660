"""What the measure of answers is made of: when a sentence was whole, ratios of pairs, and what judging computes."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.seams import Generation
from serving.answer.types import Deadline, Delta, Message

SCRIPTS = Path(__file__).parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import metering  # noqa: E402
import paired  # noqa: E402

sys.path.remove(str(SCRIPTS))

FIRST, SECOND = "The tower was built in 1889.", "It is 330 metres tall."
REPLY = f"{FIRST} [1] {SECOND} [2]"


def each(text: str) -> list[tuple[float, str]]:
    """One character a second."""
    return [(float(at), character) for at, character in enumerate(text, 1)]


def test_a_sentence_is_whole_with_its_full_stop_and_not_with_what_follows() -> None:
    assert paired.whole_at(each(REPLY), FIRST, passages=2) == len(FIRST)
    assert paired.whole_at(each(REPLY), SECOND, passages=2) == len(f"{FIRST} [1] {SECOND}")


def test_a_marker_before_the_full_stop_is_waited_for() -> None:
    reply = "The tower was built in 1889 [1]. It is tall [2]."
    assert paired.whole_at(each(reply), FIRST, passages=2) == len("The tower was built in 1889 [1].")


def test_a_sentence_that_was_not_written_is_never_whole() -> None:
    assert paired.whole_at(each(REPLY), "The tower is new.", passages=2) is None
    assert paired.whole_at(each(FIRST[:-1]), FIRST, passages=2) is None


@given(st.lists(st.integers(1, len(REPLY) - 1), unique=True).map(sorted))
def test_however_the_reply_came_it_is_the_piece_that_holds_the_full_stop(cuts: list[int]) -> None:
    edges = [0, *cuts, len(REPLY)]
    pieces = [(float(end), REPLY[start:end]) for start, end in pairwise(edges)]
    assert paired.whole_at(pieces, FIRST, passages=2) == next(end for end in edges if end >= len(FIRST))


def test_the_ratio_is_the_middle_one_of_pairs_and_not_that_of_sums() -> None:
    pairs = [(1.0, 1.0), (100.0, 50.0), (3.0, 1.0)]
    assert paired.middle(pairs) == 2.0
    assert paired.spread(pairs) == [1.0, 3.0]
    with pytest.raises(ValueError, match="no pair"):
        paired.middle([])


@pytest.mark.parametrize(("ours", "most", "least"), [(1.1, True, True), (1.2, False, True), (0.9, True, False)])
def test_a_bar_holds_on_its_side_of_the_target(ours: float, most: bool, least: bool) -> None:
    pairs = [(ours, 1.0)]
    assert paired.at_most("a", pairs, 1.1)["ok"] is most
    found = paired.at_least("a", pairs, 1.1 if ours > 1 else 0.95, raw=0.5)
    assert found["ok"] is least
    assert (found["value"], found["n"], found["raw"]) == (ours, 1, 0.5)


def test_compute_is_taken_off_a_time_but_not_all_of_it() -> None:
    assert paired.without(2.0, 0.5) == 1.5
    assert paired.without(2.0, 5.0) == 0.2


def busy(cpu_s: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began < cpu_s:
        pass


async def test_a_meter_counts_what_is_timed_on_the_loop_and_in_threads_and_not_the_loops_other_work() -> None:
    meter = metering.Meter()
    elsewhere = threading.Event()

    async def judging() -> str:
        busy(0.05)
        await asyncio.to_thread(busy, 0.05)
        await asyncio.to_thread(elsewhere.wait)
        return "judged"

    async def other() -> None:
        busy(0.3)
        elsewhere.set()

    said, _ = await asyncio.gather(meter.timed(judging()), other())
    assert said == "judged"
    assert 0.1 <= meter.cpu_s < 0.25


async def test_a_metered_call_can_be_cancelled_and_raises_what_it_raised() -> None:
    meter = metering.Meter()
    left = []

    async def waiting() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            left.append(True)

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    task = asyncio.create_task(meter.timed(waiting()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left == [True]
    with pytest.raises(ValueError, match="broken"):
        await meter.timed(failing())


class FakeSynthesizer:
    async def generate(self, request: Generation, *, deadline: Deadline):
        yield Delta(request.request_id, "stop", 1, 1)


async def test_nobody_begins_before_all_prompts_are_ready_and_the_meter_begins_then() -> None:
    meter = metering.Meter()
    starter = metering.Starter(FakeSynthesizer(), meter)
    starter.expect(2)
    meter.cpu_s = 5.0

    async def write(name: str) -> str:
        request = Generation((Message("user", "Hello"),), name, 1)
        return "".join(
            [delta.text async for delta in starter.generate(request, deadline=Deadline.after(9.0, time.monotonic))]
        )

    one = asyncio.create_task(write("one"))
    await asyncio.sleep(0.01)
    assert (starter.began, meter.cpu_s) == ({}, 5.0)
    assert await write("two") == "two"
    assert await one == "one"
    assert set(starter.began) == set(starter.requests) == {"one", "two"}
    assert meter.cpu_s == 0.0
