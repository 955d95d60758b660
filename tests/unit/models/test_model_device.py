"""Where a model computes, and how much of a GPU its process may take."""

from __future__ import annotations

import os
import sys
import threading

import pytest
import torch

from models import device
from serving.answer.errors import DeviceMissingError


@pytest.fixture
def fractions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, torch.device]]:
    """What torch was told to keep to; it sees a GPU."""
    told: list[tuple[float, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *given: told.append(given))
    return told


def test_a_share_bounds_what_the_process_may_take(fractions: list[tuple[float, torch.device]]) -> None:
    assert device.choose("cuda", 0.25) == torch.device("cuda")
    assert fractions == [(0.25, torch.device("cuda"))]


def test_without_a_share_there_is_no_bound(fractions: list[tuple[float, torch.device]]) -> None:
    assert device.choose(None) == torch.device("cuda")
    assert device.choose("cpu", 0.25) == torch.device("cpu")
    assert fractions == []


def test_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device.choose(None) == torch.device("cpu")
    with pytest.raises(DeviceMissingError, match="sees no GPU"):
        device.choose("cuda", 0.25)


@pytest.mark.gpu
def test_torch_fails_beyond_its_share() -> None:
    where = device.choose("cuda", 0.01)
    total = torch.cuda.get_device_properties(where).total_memory
    with pytest.raises(torch.cuda.OutOfMemoryError):
        torch.empty(total // 20, dtype=torch.uint8, device=where)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is the process's")
async def test_what_computes_yields_to_the_event_loop() -> None:
    """The operations' own threads too, which are started by the first operation."""

    def multiply() -> list[int]:
        before = set(os.listdir("/proc/self/task"))
        torch.ones(700, 700) @ torch.ones(700, 700)
        started = set(os.listdir("/proc/self/task")) - before
        mine = [threading.get_native_id(), *map(int, started)]
        return [os.getpriority(os.PRIO_PROCESS, thread) for thread in mine]

    computing = device.DeviceThread("tiny", threads=2)
    try:
        priorities = await computing.run(multiply)
    finally:
        computing.close()
    assert min(priorities) > os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
