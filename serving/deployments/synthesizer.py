"""The Synthesizer deployment: one vLLM engine a replica, started on the replica's loop and shut down with it, or the
connections to an endpoint that serves the model elsewhere.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ray import serve

from models.catalog import Catalog
from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.lora import check_fits
from models.synthesizer import VllmSynthesizer
from models.vllm_options import VllmOptions
from models.weights import name_of
from serving.answer.seams import Generation
from serving.answer.types import Delta, Message
from serving.deployments.base import WARM_UP_S, ReplaceableDeployment, deadline_in
from serving.deployments.replacing import Part, Replaceable
from serving.settings import Settings

if TYPE_CHECKING:
    from models.endpoint import Endpoint
    from models.remote_synthesizer import EndpointSynthesizer


@dataclass(frozen=True, slots=True)
class Located:
    """Weights on this machine: the model's folder, the adapter that runs beside it, and the name that answers carry."""

    model: Path
    adapter: tuple[str, Path] | None
    name: str


def located(settings: Settings, reference: str | None) -> Located:
    """The model with the adapter that ``reference`` names: merged, or to run beside it, as the settings say.

    Blocks. Raises :class:`~models.errors.ModelError` when there is none, or it was not trained on this model.
    """
    chosen = settings.models.synthesizer
    catalog = Catalog(settings.home)
    model = catalog.locate(chosen.model)
    name = f"{model.name}@{fingerprint(model)}"
    if reference is None:
        return Located(model, None, name)
    adapter = catalog.locate(reference)
    check_fits(model, adapter)
    name = f"{name}+{name_of(reference, adapter)}"
    if chosen.merge_adapter:
        return Located(catalog.merged(model, adapter), None, name)
    return Located(model, (adapter.name, adapter), name)


def options_of(settings: Settings) -> VllmOptions:
    """The engine's options, with its model located (and prepared, the first time)."""
    chosen = settings.models.synthesizer
    weights = located(settings, chosen.adapter)
    return VllmOptions(
        model=weights.model,
        dtype=chosen.dtype,
        max_model_len=chosen.max_model_len,
        kv_cache_gib=chosen.kv_cache_gib,
        gpu_memory_utilization=chosen.gpu_memory_utilization,
        max_num_seqs=chosen.max_num_seqs,
        threads=chosen.threads or max(1, (os.cpu_count() or 2) - 1),
        enforce_eager=chosen.enforce_eager,
        adapter=weights.adapter,
        tensor_parallel_size=chosen.tensor_parallel_size,
        # vLLM looks for GPUs of its own process unless it is told that its workers are Ray's.
        executor="ray" if settings.deployments.synthesizer.bundle_gpus else None,
        patience_s=chosen.patience_s,
        name=weights.name,
    )


def endpoint_of(settings: Settings) -> Endpoint:
    """The endpoint that serves the model elsewhere, with its key read. Raises :class:`~models.errors.ModelError`."""
    from models.endpoint import Endpoint, read_key

    chosen = settings.models.synthesizer.openai
    return Endpoint(
        base_url=chosen.base_url or "",
        model=chosen.model or "",
        key=read_key(chosen.key_env, chosen.key_file),
        constraint=chosen.constraint,
        length_field=chosen.length_field,
        attempts=chosen.attempts,
        backoff_s=chosen.backoff_s,
    )


async def started(settings: Settings) -> VllmSynthesizer | EndpointSynthesizer:
    if settings.models.synthesizer.kind == "openai":
        from models.remote_synthesizer import EndpointSynthesizer

        return EndpointSynthesizer(endpoint_of(settings))
    synthesizer = await VllmSynthesizer.start(options_of(settings))
    # The first request compiles kernels and the grammar's automaton builder; nobody should wait for that.
    warm_up = Generation((Message("user", "Say yes."),), "warm-up", max_tokens=2, grammar="(?:yes|no)")
    async for _ in synthesizer.generate(warm_up, deadline=deadline_in(WARM_UP_S)):
        pass
    return synthesizer


@serve.deployment(name="Synthesizer")
class SynthesizerDeployment(ReplaceableDeployment):
    """Its ``user_config``: ``adapter``, a reference to a LoRA adapter, or null for the bare model."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        self._settings = settings
        self._in_flight = 0
        self._synthesizer = await started(settings)
        adapter = settings.models.synthesizer.adapter
        part = Part(adapter, self._synthesizer.name, adapter)
        self._replaceable = Replaceable({"adapter": part}, {"adapter": self._take})

    async def _take(self, reference: str | None) -> str:
        """Writes with the adapter that ``reference`` names from now on; returns when no reply uses the old weights."""
        if not isinstance(self._synthesizer, VllmSynthesizer):
            raise ModelUnusableError(
                "The model that writes is served elsewhere (models.synthesizer.kind is openai): roll it out there."
            )
        weights = await asyncio.to_thread(located, self._settings, reference)
        if self._settings.models.synthesizer.merge_adapter:
            await self._synthesizer.load(weights.model, weights.name)
        else:
            await self._synthesizer.adapt(weights.adapter, weights.name)
        return weights.name

    async def generate(self, request: Generation, *, timeout_s: float) -> AsyncGenerator[Delta, None]:
        self._count()
        self._in_flight += 1
        try:
            async with aclosing(self._synthesizer.generate(request, deadline=deadline_in(timeout_s))) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            self._in_flight -= 1

    async def in_flight(self) -> int:
        """How many replies the engine has been asked for and is not rid of: written, cut off or aborted."""
        return self._in_flight

    async def name(self) -> str:
        return self._synthesizer.name

    async def check_health(self) -> None:
        await self._synthesizer.health()

    async def __del__(self) -> None:
        closing = self._synthesizer.close()
        if inspect.isawaitable(closing):
            await closing
