"""The Synthesizer deployment: one vLLM engine a replica, started on the replica's loop and shut down with it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator

from ray import serve

from models.catalog import Catalog
from models.synthesizer import VllmSynthesizer
from models.vllm_options import VllmOptions
from serving.answer.seams import Generation
from serving.answer.types import Delta, Message
from serving.deployments.base import WARM_UP_S, ModelDeployment, deadline_in
from serving.settings import Settings


def options_of(settings: Settings) -> VllmOptions:
    """The engine's options, with its model located (and prepared, the first time)."""
    chosen = settings.models.synthesizer
    catalog = Catalog(settings.home)
    model = catalog.locate(chosen.model)
    adapter = catalog.locate(chosen.adapter) if chosen.adapter else None
    if adapter is not None and chosen.merge_adapter:
        model, adapter = catalog.merged(model, adapter), None
    return VllmOptions(
        model=model,
        dtype=chosen.dtype,
        max_model_len=chosen.max_model_len,
        kv_cache_gib=chosen.kv_cache_gib,
        gpu_memory_utilization=chosen.gpu_memory_utilization,
        max_num_seqs=chosen.max_num_seqs,
        threads=chosen.threads or max(1, (os.cpu_count() or 2) - 1),
        enforce_eager=chosen.enforce_eager,
        adapter=(adapter.name, adapter) if adapter else None,
        tensor_parallel_size=chosen.tensor_parallel_size,
        # vLLM looks for GPUs of its own process unless it is told that its workers are Ray's.
        executor="ray" if settings.deployments.synthesizer.bundle_gpus else None,
        patience_s=chosen.patience_s,
    )


@serve.deployment(name="Synthesizer")
class SynthesizerDeployment(ModelDeployment):
    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        self._synthesizer = await VllmSynthesizer.start(options_of(settings))
        # The first request compiles kernels and the grammar's automaton builder; nobody should wait for that.
        warm_up = Generation((Message("user", "Say yes."),), "warm-up", max_tokens=2, grammar="(?:yes|no)")
        async for _ in self._synthesizer.generate(warm_up, deadline=deadline_in(WARM_UP_S)):
            pass

    async def generate(self, request: Generation, *, timeout_s: float) -> AsyncGenerator[Delta, None]:
        self._count()
        async for delta in self._synthesizer.generate(request, deadline=deadline_in(timeout_s)):
            yield delta

    async def name(self) -> str:
        return self._synthesizer.name

    async def check_health(self) -> None:
        await self._synthesizer.health()

    async def __del__(self) -> None:
        self._synthesizer.close()
