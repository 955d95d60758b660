"""Embeddings of questions, and which of them are close."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


def nearest(vector: Vectors, known: Vectors, threshold: float) -> list[int]:
    """The rows of ``known`` (unit vectors, shape (n, dim)) whose cosine with ``vector`` reaches it, closest first."""
    cosines = known @ vector
    reaching = np.flatnonzero(cosines >= threshold)
    return [int(row) for row in reaching[np.argsort(-cosines[reaching], kind="stable")]]
