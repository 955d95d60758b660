"""The runtime with a scripted model: what runs where, and what happens when it stops."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
import torch

from models.runtime import Check, EncoderRuntime
from serving.answer.errors import DeadlineExceededError, UnavailableError
from serving.answer.types import Deadline


@dataclass(frozen=True)
class FakeRow:
    text: str

    @property
    def length(self) -> int:
        return len(self.text)


class FakeModel:
    """Answers with lengths; waits while ``gate`` is closed, and raises ``error`` where there is one."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.threads: set[str] = set()

    def forward(self, rows: list[FakeRow]) -> list[int]:
        self.threads.add(threading.current_thread().name)
        self.gate.wait(30)
        if self.error:
            raise self.error
        return [row.length for row in rows]


class FakeClock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runtime(model: FakeModel, clock: FakeClock) -> Iterator[EncoderRuntime[FakeRow, int]]:
    made = EncoderRuntime[FakeRow, int]("fake", model.forward, threads=1, budget=64, patience_s=30.0, clock=clock)
    yield made
    model.gate.set()
    made.close()


def reading(*texts: str) -> Callable[[Check], tuple[Sequence[FakeRow], str]]:
    return lambda _check: ([FakeRow(text) for text in texts], threading.current_thread().name)


async def test_tokens_are_read_and_rows_computed_off_the_loop(
    runtime: EncoderRuntime[FakeRow, int], model: FakeModel
) -> None:
    done, reader = await runtime.run(reading("a", "abc"))
    assert done.results == [1, 3]
    assert reader.startswith("fake-reader")
    assert all(name.startswith("fake") and name != reader for name in model.threads)
    assert (done.phases.tokens, done.phases.padded_tokens) == (4, 6)


async def test_the_loop_goes_on_while_the_device_works(runtime: EncoderRuntime[FakeRow, int], model: FakeModel) -> None:
    model.gate.clear()
    task = asyncio.create_task(runtime.run(reading("a")))
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert not task.done()
    model.gate.set()
    assert (await task)[0].results == [1]


async def test_it_is_unhealthy_when_nothing_comes_of_work(
    runtime: EncoderRuntime[FakeRow, int], model: FakeModel, clock: FakeClock
) -> None:
    clock.now += 1000.0
    runtime.health()
    model.gate.clear()
    task = asyncio.create_task(runtime.run(reading("a")))
    while not model.threads:  # noqa: ASYNC110 - a thread tells
        await asyncio.sleep(0.001)
    clock.now += 29.0
    runtime.health()
    clock.now += 2.0
    with pytest.raises(UnavailableError, match="31 s"):
        runtime.health()
    model.gate.set()
    await task
    runtime.health()


async def test_a_lost_gpu_is_unhealthy_at_once(runtime: EncoderRuntime[FakeRow, int], model: FakeModel) -> None:
    model.error = torch.AcceleratorError("an illegal memory access was encountered")
    with pytest.raises(UnavailableError, match="GPU of the fake"):
        await runtime.run(reading("a", "b"))
    with pytest.raises(UnavailableError):
        runtime.health()


async def test_reading_stops_when_the_caller_leaves(runtime: EncoderRuntime[FakeRow, int], model: FakeModel) -> None:
    begun, read = threading.Event(), list[int]()

    def endless(check: Check) -> tuple[list[FakeRow], None]:
        begun.set()
        while True:
            check()
            read.append(1)
            time.sleep(0.001)

    task = asyncio.create_task(runtime.run(endless))
    while not begun.is_set():  # noqa: ASYNC110 - a thread tells
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await runtime.run(reading("a")))[0].results == [1]  # the reader is free again


async def test_a_deadline_ends_the_reading(runtime: EncoderRuntime[FakeRow, int], clock: FakeClock) -> None:
    def slow(check: Check) -> tuple[list[FakeRow], None]:
        clock.now += 10.0
        check()
        return [], None

    with pytest.raises(DeadlineExceededError, match="fake"):
        await runtime.run(slow, deadline=Deadline.after(5.0, clock))


async def test_a_closed_runtime_says_so(model: FakeModel) -> None:
    runtime = EncoderRuntime[FakeRow, int]("fake", model.forward, threads=1, budget=64)
    runtime.close()
    with pytest.raises(UnavailableError, match="closed"):
        await runtime.run(reading("a"))
