"""One thread that owns a model: whatever computes on the model runs there, one job after the other."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from serving.answer.errors import DeviceMissingError, UnavailableError

T = TypeVar("T")

_YIELDING = 4  # Ray's workers are at 15, and 19 is the last


def choose(device: str | None, memory_share: float | None = None) -> torch.device:
    """The device to compute on; ``None`` is a GPU where there is one. On a GPU torch may take ``memory_share`` of its
    memory in this process, and fails beyond it instead of taking what others count on; ``None`` sets no bound.

    Raises :class:`~serving.answer.errors.DeviceMissingError` when this process sees no GPU and is to use one.
    """
    chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if chosen.type != "cuda":
        return chosen
    if not torch.cuda.is_available():
        raise DeviceMissingError(
            "A model's device is cuda, and this process sees no GPU that torch can use: set device to cpu, or install "
            "the `gpu` extra on a machine with a GPU."
        )
    if memory_share:
        torch.cuda.set_per_process_memory_fraction(memory_share, chosen)
    return chosen


class DeviceThread:
    """Runs jobs in order on one thread of its own, with ``threads`` threads inside each operation.

    Where the system lets a thread yield, these do: on a CPU they would keep the event loops, which refuse what is too
    much and hear callers leave, waiting for their turn on the same cores.
    """

    def __init__(self, name: str, *, threads: int) -> None:
        self._name = name
        self._closed = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_begin, initargs=(threads,))

    async def run(self, job: Callable[[], T]) -> T:
        """The result of ``job()``, or what it raises.

        Raises :class:`~serving.answer.errors.UnavailableError` when the device is closed or lost.
        """
        if self._closed:
            raise UnavailableError(f"The {self._name} is closed.")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, job)
        except torch.AcceleratorError as error:  # what a GPU does after it is not to be trusted, nor is what was on it
            raise UnavailableError(f"The GPU of the {self._name} failed ({type(error).__name__}).") from error

    def close(self) -> None:
        """Waits for the job under way and ends the thread; jobs that have not started are cancelled."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def yielding(job: Callable[[], T]) -> T:
    """The result of ``job()``, run on a thread that yields: so do all threads that it starts, and leaves running."""
    with ThreadPoolExecutor(1, initializer=_give_way) as pool:
        return pool.submit(job).result()


def _begin(threads: int) -> None:
    """For the thread that calls it, and those that its operations start."""
    torch.set_num_threads(threads)
    _give_way()


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere a priority is the process's
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(19, os.nice(0) + _YIELDING))
