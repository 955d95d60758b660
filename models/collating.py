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
) -> dict[str, torch.Tensor]:
    """The inputs of a pass over ``rows``, each of shape (rows, longest row), int64, with their ``attention_mask``.

    ``padding`` is what fills up each input. They lie in the CPU's memory: :mod:`models.transfer` takes them on.
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
    return {name: torch.from_numpy(array) for name, array in {**arrays, "attention_mask": mask}.items()}
