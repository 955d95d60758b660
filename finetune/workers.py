"""The workers of a job, seen from one of them: which is the first, and what they agree on.

A job that runs as a plain process is its own first and only worker.
"""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import distributed

T = TypeVar("T")


def count() -> int:
    return distributed.get_world_size() if _many() else 1


def is_first() -> bool:
    """Whether this worker writes what all of them make: checkpoints, metrics, weights."""
    return not _many() or distributed.get_rank() == 0


def wait() -> None:
    """Returns once all workers have come this far."""
    if _many():
        distributed.barrier()


def agreed(value: T) -> T:
    """The first worker's value, at all of them. It must pickle."""
    if not _many():
        return value
    box = [value]
    distributed.broadcast_object_list(box, src=0, device=_device())
    return box[0]


def gathered(value: T) -> list[T]:
    """Every worker's value, the first one's first. They must pickle."""
    if not _many():
        return [value]
    box: list[T] = [value] * count()
    distributed.all_gather_object(box, value)
    return box


def total(value: torch.Tensor) -> torch.Tensor:
    """The sum of all workers' values. No gradient flows through it."""
    if not _many():
        return value
    summed = value.detach().clone()
    distributed.all_reduce(summed)
    return summed


def _many() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def _device() -> torch.device | None:
    """Where objects travel: over NCCL only what is on the GPU does."""
    return torch.device("cuda", torch.cuda.current_device()) if distributed.get_backend() == "nccl" else None
