"""Puts rows of tokens of different lengths into one rectangle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import torch


def collate(
    rows: Sequence[Mapping[str, Sequence[int]]],
    *,
    padding: Mapping[str, int],
    side: Literal["right", "left"],
    device: torch.device,
) -> dict[str, torch.Tensor]:
    """The inputs of a pass over ``rows``, each of shape (rows, longest row), int64, with their ``attention_mask``.

    ``padding`` is what fills up each input. To a GPU they are copied from pinned memory, which waits for nothing.
    """
    lengths = [len(row["input_ids"]) for row in rows]
    shape = (len(rows), max(lengths))
    arrays = {name: np.full(shape, filler, dtype=np.int64) for name, filler in padding.items()}
    mask = np.zeros(shape, dtype=np.int64)
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        place = slice(0, length) if side == "right" else slice(shape[1] - length, shape[1])
        mask[number, place] = 1
        for name, array in arrays.items():
            array[number, place] = row[name]
    tensors = {name: torch.from_numpy(array) for name, array in {**arrays, "attention_mask": mask}.items()}
    if device.type == "cuda":
        tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
    return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
