"""How vLLM is started: our options, and the environment it reads while it is imported."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from models.cpu import Dtype


@dataclass(frozen=True, slots=True)
class VllmOptions:
    """Options of one engine.

    ``max_model_len`` counts prompt and reply in tokens. ``kv_cache_gib`` is the memory of the KV cache; None leaves it
    to ``gpu_memory_utilization``, a share of the device's memory (on a CPU: of the machine's). ``threads`` is the width
    of an operation on a CPU; None is what ``OMP_NUM_THREADS`` says, else all cores but one: threads that wait for each
    other are several times slower than one alone as soon as something else wants their core. ``adapter`` is a LoRA
    adapter, by name and folder, that every reply is written with. ``patience_s`` is how long nothing may come out while
    something is in flight before the engine counts as stuck. ``executor`` is who runs the workers of more than one
    device: ``ray`` in the placement group that this process runs in, else processes of this machine. ``name`` is what
    replies say they were written by; when None it is made from the folders.
    """

    model: Path
    dtype: Dtype = "auto"
    max_model_len: int = 4096
    kv_cache_gib: float | None = 0.5
    gpu_memory_utilization: float = 0.3
    max_num_seqs: int = 8
    threads: int | None = None
    enforce_eager: bool = True
    enable_prefix_caching: bool = True
    adapter: tuple[str, Path] | None = None
    seed: int = 0
    tensor_parallel_size: int = 1
    executor: Literal["ray"] | None = None
    patience_s: float = 120.0
    name: str | None = None


def prepare_environment(options: VllmOptions) -> None:
    """Sets what vLLM reads from the environment. Call before it is imported.

    What a person has set stands, except the number of threads when ``options`` names one: Ray sets it to 1 in every
    worker, and nobody can tell the two apart.
    """
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # it warns of every tensor it casts
    # With one device the engine process computes itself. By default a CPU gets one more process, which costs memory and
    # start-up time and is bound to half of two cores.
    if options.tensor_parallel_size == 1:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    if options.threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) - 1)))
