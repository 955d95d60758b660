"""The embedding half on a GPU: what is said where there is none, and, with one, the same answers as on a CPU."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from serving.answer.errors import DeviceMissingError
from serving.retrieval import accelerator
from serving.retrieval.accelerator import GpuIndex, to_device
from serving.retrieval.index import HybridIndex

from .conftest import LIBRARY, Build

DIMENSION = 8


def flat(rows: int = 50) -> Any:
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(np.random.default_rng(0).normal(size=(rows, DIMENSION)).astype(np.float32))
    return index


def graph(rows: int = 50) -> Any:
    index = faiss.IndexHNSWFlat(DIMENSION, 8, faiss.METRIC_INNER_PRODUCT)
    index.add(np.random.default_rng(0).normal(size=(rows, DIMENSION)).astype(np.float32))
    return index


class FakeResources:
    def __init__(self) -> None:
        self.scratch = -1

    def setTempMemory(self, size: int) -> None:  # noqa: N802 (FAISS's name)
        self.scratch = size


class FakeGpu:
    """Stands for FAISS's GPU half: keeps what was copied to it, and fails like it when ``full``."""

    def __init__(self, gpus: int = 1, *, full: bool = False) -> None:
        self.gpus, self.full = gpus, full
        self.copied: list[tuple[int, Any, int]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(faiss, "StandardGpuResources", FakeResources, raising=False)
        monkeypatch.setattr(faiss, "get_num_gpus", lambda: self.gpus)
        monkeypatch.setattr(faiss, "index_cpu_to_gpu", self.copy, raising=False)

    def copy(self, resources: FakeResources, device: int, index: Any) -> Any:
        if self.full:
            raise RuntimeError("cudaMalloc error out of memory")
        copy = faiss.clone_index(index)
        self.copied.append((device, copy, resources.scratch))
        return copy


def test_on_a_cpu_the_index_is_itself() -> None:
    index = flat()
    assert to_device(index, "cpu") is index


@pytest.mark.skipif(hasattr(faiss, "StandardGpuResources"), reason="this FAISS knows GPUs")
def test_a_faiss_without_gpus_names_the_package_to_install() -> None:
    with pytest.raises(DeviceMissingError, match=r"install the `gpu` extra.*or set retrieval\.device to cpu"):
        to_device(flat(), "cuda")


def test_a_machine_without_gpus_names_the_keys_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpu(gpus=0).install(monkeypatch)
    with pytest.raises(DeviceMissingError, match=r"set deployments\.retriever\.num_gpus .* retrieval\.device to cpu"):
        to_device(flat(), "cuda")


def test_an_index_that_does_not_fit_says_how_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpu(full=True).install(monkeypatch)
    with pytest.raises(DeviceMissingError, match=r"50 vectors of 8 numbers .* leave it more room"):
        to_device(flat(), "cuda")


@pytest.mark.parametrize("make", [flat, graph])
def test_the_vectors_alone_go_to_the_gpu(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    gpu = FakeGpu()
    gpu.install(monkeypatch)
    found = to_device(make(), "cuda", scratch_bytes=123)
    ((device, copied, scratch),) = gpu.copied
    assert (device, scratch) == (0, 123)
    assert isinstance(copied, faiss.IndexFlat)
    assert (found.ntotal, found.d) == (50, DIMENSION)
    query = np.ones((1, DIMENSION), dtype=np.float32)
    assert found.search(query, 5)[1].tolist() == flat().search(query, 5)[1].tolist()


def test_one_search_at_a_time() -> None:
    class Watched:
        ntotal, d, inside, most = 1, 1, 0, 0

        def search(self, *_: Any) -> tuple[None, None]:
            self.inside += 1
            self.most = max(self.most, self.inside)
            threading.Event().wait(0.002)
            self.inside -= 1
            return None, None

    watched = Watched()
    index = GpuIndex(watched, FakeResources())
    threads = [threading.Thread(target=index.search, args=(None, 1)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watched.most == 1


@pytest.mark.skipif(hasattr(faiss, "StandardGpuResources"), reason="this FAISS knows GPUs")
def test_an_index_that_cannot_go_to_the_gpu_is_not_called_damaged(tmp_path: Path, build: Build) -> None:
    build(LIBRARY)
    assert HybridIndex.open(tmp_path, device="cpu")
    with pytest.raises(DeviceMissingError):
        HybridIndex.open(tmp_path, device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("make", [flat, graph])
def test_a_gpu_finds_what_a_cpu_finds(make: Any) -> None:
    queries = np.random.default_rng(1).normal(size=(20, DIMENSION)).astype(np.float32)
    found = to_device(make(5_000), "cuda")
    assert isinstance(found, accelerator.GpuIndex)
    _, expected = flat(5_000).search(queries, 10)
    assert found.search(queries, 10)[1].tolist() == expected.tolist()
