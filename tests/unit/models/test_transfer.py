"""What goes on beside a pass: copies in and out on threads of their own, the same scores, the order of passes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tiny_checkpoints import pair_classifier

from models import encoder as encoder_module
from models.encoder import PairEncoder
from models.runtime import Check, EncoderRuntime
from models.transfer import Fetch, InPlace, Staged, Tensors, transfer
from serving.answer.errors import UnavailableError


@dataclass(frozen=True)
class FakeRow:
    number: int
    length: int = 10


class FakeGpu:
    """Three parts of a pass that say on which thread they ran, and when; it computes while ``computed`` is closed."""

    def __init__(self) -> None:
        self.computed = threading.Event()
        self.computed.set()
        self.happened: list[tuple[str, int]] = []
        self.threads: dict[str, set[int]] = {"stage": set(), "launch": set(), "fetch": set()}
        self.error: Exception | None = None

    def stage(self, rows: list[FakeRow]) -> Callable[[], Callable[[], Sequence[int]]]:
        self._note("stage", rows)

        def launch() -> Callable[[], Sequence[int]]:
            self._note("launch", rows)

            def fetch() -> Sequence[int]:
                self._note("fetch", rows)
                self.computed.wait(30)
                if self.error:
                    raise self.error
                return [row.number for row in rows]

            return fetch

        return launch

    def _note(self, part: str, rows: list[FakeRow]) -> None:
        self.happened.append((part, rows[0].number))
        self.threads[part].add(threading.get_ident())


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu()


@pytest.fixture
def runtime(gpu: FakeGpu) -> Iterator[EncoderRuntime[FakeRow, int]]:
    def never(_rows: list[FakeRow]) -> list[int]:
        raise AssertionError("computed in one part")

    made = EncoderRuntime[FakeRow, int]("fake", never, threads=1, budget=20, stage=gpu.stage)
    yield made
    gpu.computed.set()
    made.close()


def reading(count: int) -> Callable[[Check], tuple[Sequence[FakeRow], None]]:
    return lambda _check: ([FakeRow(number) for number in range(count)], None)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - threads tell
            await asyncio.sleep(0.001)


async def test_the_next_pass_is_copied_and_queued_while_one_computes(
    runtime: EncoderRuntime[FakeRow, int], gpu: FakeGpu
) -> None:
    gpu.computed.clear()
    task = asyncio.create_task(runtime.run(reading(8)))
    await until(lambda: len([part for part, _ in gpu.happened if part == "launch"]) == 2)
    assert ("fetch", 0) in gpu.happened
    assert not task.done()
    await asyncio.sleep(0.05)
    assert len([part for part, _ in gpu.happened if part == "stage"]) == 2  # one ahead, and no more
    gpu.computed.set()
    assert (await task)[0].results == list(range(8))
    for part in ("stage", "launch", "fetch"):
        assert [number for done, number in gpu.happened if done == part] == [0, 2, 4, 6]
    assert all(len(threads) == 1 for threads in gpu.threads.values())
    assert len(set.union(*gpu.threads.values())) == 3


async def test_a_gpu_that_fails_while_results_are_awaited_is_lost(
    runtime: EncoderRuntime[FakeRow, int], gpu: FakeGpu
) -> None:
    gpu.error = torch.AcceleratorError("an illegal memory access was encountered")
    with pytest.raises(UnavailableError, match="GPU of the fake"):
        await runtime.run(reading(1))
    with pytest.raises(UnavailableError):
        runtime.health()


async def test_a_pass_that_nobody_waits_for_is_not_staged(runtime: EncoderRuntime[FakeRow, int], gpu: FakeGpu) -> None:
    gpu.computed.clear()
    task = asyncio.create_task(runtime.run(reading(8)))
    await until(lambda: len([part for part, _ in gpu.happened if part == "launch"]) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gpu.computed.set()
    assert (await runtime.run(lambda _check: ([FakeRow(9)], None)))[0].results == [9]
    assert [number for part, number in gpu.happened if part == "stage"] == [0, 2, 9]


class FakeCopies:
    """A device that overlaps, on the CPU: it notes what it was given."""

    overlaps = True

    def __init__(self) -> None:
        self.staged: list[set[str]] = []

    def stage(self, inputs: Tensors) -> Staged:
        self.staged.append(set(inputs))
        return InPlace().stage({name: one.clone() for name, one in inputs.items()})

    def fetch(self, results: torch.Tensor) -> Fetch:
        assert results.dtype is torch.float32
        return InPlace().fetch(results)


async def test_an_encoder_scores_the_same_in_three_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pair_classifier(tmp_path, labels={0: "no", 1: "yes"})
    asked = [("the quick fox runs " * (1 + number % 4), "the fox") for number in range(20)]
    plain = PairEncoder(folder, order="settled_first", threads=1, batch_tokens=64)
    copies = FakeCopies()
    monkeypatch.setattr(encoder_module, "transfer", lambda _device: copies)
    parted = PairEncoder(folder, order="settled_first", threads=1, batch_tokens=64)
    assert await parted.score(asked) == pytest.approx(plain.compute(asked), abs=1e-6)
    assert parted.compute(asked) == pytest.approx(plain.compute(asked), abs=1e-6)
    assert len(copies.staged) > 4
    assert all({"input_ids", "attention_mask"} <= names for names in copies.staged)
    plain.close()
    parted.close()


def test_a_cpu_moves_nothing() -> None:
    here = transfer(torch.device("cpu"))
    assert not here.overlaps
    one = torch.arange(3)
    assert here.stage({"one": one})()["one"] is one
    assert here.fetch(torch.tensor([[0.5], [0.25]]))() == [[0.5], [0.25]]
