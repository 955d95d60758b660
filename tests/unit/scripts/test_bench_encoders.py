"""What the measure of encoders is made of: its load, what it makes of replies, and what it counts."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import sys
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual_time import run

SCRIPTS = Path(__file__).parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from encoders import enduring, load  # noqa: E402

sys.path.remove(str(SCRIPTS))


def test_lengths_are_those_of_retrieved_passages() -> None:
    drawn = load.lengths(random.Random(1), 20_000)
    assert median(drawn) == pytest.approx(148, rel=0.03)
    assert 165 < mean(drawn) < 200
    assert max(drawn) == load.LONGEST
    assert min(drawn) >= 1


def test_bodies_are_the_same_every_time_and_no_two_alike() -> None:
    first = load.bodies(3, 4, model="m")
    assert first == load.bodies(3, 4, model="m")
    documents = [text for body in first for text in json.loads(body)["documents"]]
    assert len(documents) == 4 * load.DOCUMENTS
    assert len(set(documents)) == len(documents)


class FakeServer:
    """Takes a second for a request, one at a time, and refuses the seventh."""

    def __init__(self) -> None:
        self.asked = 0
        self._turn = asyncio.Semaphore(1)

    async def __call__(self, body: bytes) -> tuple[int, dict[str, str]]:
        self.asked += 1
        if self.asked == 7:
            return 429, {}
        async with self._turn:
            await asyncio.sleep(1.0)
        return 200, {"x-compute-tokens": "10", "x-padded-tokens": "12"}


def test_a_closed_loop_waits_for_replies_and_an_open_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(load.time, "perf_counter", asyncio.get_running_loop().time)
        closed = await load.closed_loop(FakeServer(), [b""] * 9, clients=2, pairs=5)
        assert closed.lasted_s == pytest.approx(8.0)
        assert closed.pairs_per_s() == pytest.approx(5.0)
        assert closed.padding() == pytest.approx(1.2)
        assert len(closed.rejected) == 1
        assert not closed.failed
        assert max(reply.took_s for reply in closed.all) <= 2.0 + 1e-9
        opened = await load.open_loop(FakeServer(), [b""] * 9, per_s=100.0, seed=1, pairs=5)
        assert max(reply.took_s for reply in opened.served) > 7.5
        assert opened.rejected[0].took_s == pytest.approx(0.0, abs=1e-6)

    run(main)


def test_arrivals_come_at_the_rate_that_is_asked_for() -> None:
    at = list(islice(load.arrivals(random.Random(5), 4.0), 20_000))
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert mean(gaps) == pytest.approx(0.25, rel=0.03)
    assert median(gaps) == pytest.approx(0.25 * math.log(2), rel=0.05)  # as exponential gaps have it


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_is_the_least_value_that_enough_are_not_above(values: list[float], share: float) -> None:
    found = load.percentile(values, share)
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


def test_a_bar_of_nothing_does_not_hold() -> None:
    assert not load.bar("none", load.percentile([], 0.5), 1.0, at_least=False)["ok"]
    assert not load.bar("none", math.nan, 1.0, at_least=True)["ok"]
    assert load.bar("met", 1.0, 1.0, at_least=True)["ok"]


HUNGRY = "import time; held = bytearray(2**27); time.sleep(60)"


def test_memory_is_that_of_a_process_and_all_below_it() -> None:
    alone = enduring.resident(os.getpid())
    below = os.posix_spawn(sys.executable, [sys.executable, "-c", HUNGRY], os.environ)
    try:
        for _ in range(500):
            if enduring.resident(os.getpid()) > alone + 2**27:
                break
            load.time.sleep(0.02)
        assert enduring.resident(os.getpid()) > alone + 2**27
    finally:
        os.kill(below, 9)
        os.waitpid(below, 0)
