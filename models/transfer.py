"""Moves what a pass reads to a GPU and what comes of it back, beside the passes before and after it.

A pass goes through three hands, each with a thread of its own. Its inputs are copied on a stream beside the one that
computes, while that has the pass before it. Its kernels are put into the GPU's queue, which waits for the copy and
holds no thread up. Its results are awaited where nobody else is kept from the GPU. On a CPU nothing is moved, and one
thread does it all.

CUDA graphs are not used. A graph replays one shape, and the rows and the longest row of a pass are rarely those of
another: passes would have to be padded up to the shapes of a few graphs, which costs compute. What a graph saves, the
launching of kernels, is hidden already while passes follow each other. Nobody has measured that they pay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch

Tensors = Mapping[str, torch.Tensor]

Fetch = Callable[[], list[list[float]]]
"""Waits for a pass to be computed, and gives the numbers of each row."""

Staged = Callable[[], dict[str, torch.Tensor]]
"""Gives the inputs of a pass on its device, for what the calling thread computes from now on."""


class Transfer(Protocol):
    """What a device needs for inputs to get there, and results back."""

    @property
    def overlaps(self) -> bool:
        """Whether copies and passes go on side by side, so that several threads are worth their while."""
        ...

    def stage(self, inputs: Tensors) -> Staged:
        """Begins to copy ``inputs``, which lie in the memory of the CPU."""
        ...

    def fetch(self, results: torch.Tensor) -> Fetch:
        """Begins to copy ``results`` of shape (rows, numbers), float32, which may not be computed yet."""
        ...


class InPlace:
    """The CPU's: what is to be read is there already."""

    overlaps = False

    def stage(self, inputs: Tensors) -> Staged:
        return lambda: dict(inputs)

    def fetch(self, results: torch.Tensor) -> Fetch:
        return results.tolist


class Streamed:
    """A GPU's: pinned memory on the CPU's side, and a stream for what comes in."""

    overlaps = True

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._incoming = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch's is untyped

    def stage(self, inputs: Tensors) -> Staged:
        with torch.cuda.stream(self._incoming):
            # The pinned copies may go at once: torch keeps their memory until the GPU has read it.
            there = {name: one.pin_memory().to(self._device, non_blocking=True) for name, one in inputs.items()}
            copied = self._incoming.record_event()

        def taken() -> dict[str, torch.Tensor]:
            computing = torch.cuda.current_stream(self._device)
            computing.wait_event(copied)
            for one in there.values():
                one.record_stream(computing)  # its memory is not the next copy's while a pass reads it
            return there

        return taken

    def fetch(self, results: torch.Tensor) -> Fetch:
        back = torch.empty(results.shape, dtype=results.dtype, pin_memory=True)
        back.copy_(results, non_blocking=True)
        # A thread that waits sleeps, instead of asking again and again.
        done = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]  # torch's is untyped
        done.record(torch.cuda.current_stream(self._device))

        def fetched() -> list[list[float]]:
            done.synchronize()
            values: list[list[float]] = back.tolist()
            return values

        return fetched


def transfer(device: torch.device) -> Transfer:
    """How to and from ``device``."""
    return Streamed(device) if device.type == "cuda" else InPlace()
