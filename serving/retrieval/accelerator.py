"""The embedding half on a GPU: every vector compared, which is exact and, there, fast."""

from __future__ import annotations

import threading
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray

from serving.answer.errors import DeviceMissingError

Device = Literal["cpu", "cuda"]

SCRATCH_BYTES = 256 * 2**20
_FIRST = 0  # Ray shows a replica only the GPU that it reserved


class GpuIndex:
    """A FAISS index on a GPU, with what a reader needs of one. One search at a time: its GPU resources want that."""

    def __init__(self, index: Any, resources: Any) -> None:
        self._index = index
        self._resources = resources  # the index works in their memory
        self._lock = threading.Lock()
        self.ntotal = int(index.ntotal)
        self.d = int(index.d)

    def search(self, vectors: NDArray[np.float32], limit: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        with self._lock:
            scores, ordinals = self._index.search(vectors, limit)
        return scores, ordinals


def to_device(index: Any, device: Device, *, scratch_bytes: int = SCRATCH_BYTES) -> Any:
    """``index`` itself for ``cpu``; for ``cuda`` a copy of its vectors on the first GPU that this process may see.

    Raises :class:`~serving.answer.errors.DeviceMissingError` when FAISS has no GPU support, when there is no GPU, and
    when the vectors do not fit its memory.
    """
    if device == "cpu":
        return index
    if not hasattr(faiss, "StandardGpuResources"):
        raise DeviceMissingError(
            "retrieval.device is cuda, and the FAISS that is installed knows no GPU: install the `gpu` extra "
            "(configs/locks/gpu.lock) in place of `cpu`, or set retrieval.device to cpu"
        )
    if not faiss.get_num_gpus():
        raise DeviceMissingError(
            "retrieval.device is cuda, and this process sees no GPU: set deployments.retriever.num_gpus above 0 on a "
            "machine with one, or set retrieval.device to cpu"
        )
    try:
        resources = faiss.StandardGpuResources()
        resources.setTempMemory(scratch_bytes)
        return GpuIndex(faiss.index_cpu_to_gpu(resources, _FIRST, _vectors(index)), resources)
    except RuntimeError as error:  # out of memory, most of all
        raise DeviceMissingError(
            f"the index's {index.ntotal} vectors of {index.d} numbers ({index.ntotal * index.d * 4 / 2**30:.1f} GiB) "
            "do not go onto the GPU: leave it more room (lower models.synthesizer.gpu_memory_utilization), or set "
            "retrieval.device to cpu"
        ) from error


def _vectors(index: Any) -> Any:
    """The flat index that holds the vectors: a graph's own storage, since graphs are walked on CPUs only."""
    return faiss.downcast_index(index.storage) if isinstance(index, faiss.IndexHNSW) else index
