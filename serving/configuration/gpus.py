"""Whether what is said of GPUs agrees: who computes on one, what is reserved of it, and the memory each may take.

Ray puts replicas on a GPU until the shares that they reserve make 1. So no GPU's memory is promised twice as long as no
replica may take a greater share of the memory than it reserves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from serving.settings import Settings

_SMALL_SHARE: Final = 0.1
"""What is proposed for an encoder that has no share yet: room for some hundred million parameters on a common GPU."""
_ROUNDING: Final = 1e-9


def gpu_faults(settings: Settings) -> list[str]:
    """Names every contradiction, and what to set so that there is none."""
    return _Check(settings).faults()


class _Check:
    """One pass over the settings. ``shares`` is what each deployment reserves once the advice so far is followed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._deployments = settings.deployments.named()
        self._shares = {name: deployment.num_gpus for name, deployment in self._deployments.items()}
        self._bundle_gpus = settings.deployments.synthesizer.bundle_gpus

    def faults(self) -> list[str]:
        return [
            *self._device_faults(),
            *self._parallel_faults(),
            *self._sum_faults(),
            *self._memory_faults(),
        ]

    def _device_faults(self) -> list[str]:
        """Who computes on a GPU reserves one, and nobody else does."""
        faults: list[str] = []
        devices = self._device_keys()
        for name in self._shares:
            key = f"deployments.{name}.num_gpus"
            if name == "synthesizer":
                continue  # computes on a GPU exactly when it reserves one
            if name in devices and not self._shares[name]:
                self._shares[name] = _SMALL_SHARE
                faults.append(
                    f"{devices[name]} is cuda, and {key} is 0, so nobody counts what it takes: "
                    f"set {key} to {_SMALL_SHARE}"
                )
            elif name not in devices and self._shares[name]:
                faults.append(
                    f"{key} is {self._shares[name]:g}, and {name} does not compute on a GPU here: set {key} to 0"
                )
                self._shares[name] = 0.0
        return faults

    def _device_keys(self) -> dict[str, str]:
        """Deployments that compute on a GPU, with the key that says so."""
        models = self._settings.models
        on_gpu = {
            "embedder": models.embedder.device == "cuda",
            "reranker": models.reranker.device == "cuda" and models.reranker.kind == "cross_encoder",
            "verifier": models.verifier.device == "cuda" and models.verifier.kind == "pair",
        }
        keys = {name: f"models.{name}.device" for name, is_on in on_gpu.items() if is_on}
        if models.relevance.device == "cuda" and models.relevance.kind == "pair":
            keys.setdefault("verifier", "models.relevance.device")  # it is served there
        if self._settings.retrieval.device == "cuda":
            keys["retriever"] = "retrieval.device"
        return keys

    def _parallel_faults(self) -> list[str]:
        """Tensor parallel over n GPUs is a placement group with n bundles of one GPU, where vLLM's workers run."""
        synthesizer = self._settings.deployments.synthesizer
        size, key = self._settings.models.synthesizer.tensor_parallel_size, "deployments.synthesizer"
        faults: list[str] = []
        if not self._bundle_gpus:
            if size > 1:
                faults.append(
                    f"models.synthesizer.tensor_parallel_size is {size}, and {key}.placement_group_bundles reserves "
                    f"no GPU: write {size} bundles with GPU: 1 there, or "
                    "set models.synthesizer.tensor_parallel_size to 1"
                )
            if synthesizer.placement_group_bundles:
                faults.append(
                    f"{key}.placement_group_bundles holds no GPU: set {key}.placement_group_bundles to null, or write "
                    "GPU: 1 in each bundle"
                )
            return faults
        if size != self._bundle_gpus:
            faults.append(
                f"models.synthesizer.tensor_parallel_size is {size}, and {key}.placement_group_bundles reserves "
                f"{self._bundle_gpus} GPUs: set models.synthesizer.tensor_parallel_size to {self._bundle_gpus}"
            )
        if self._shares["synthesizer"]:
            faults.append(
                f"{key}.num_gpus is {self._shares['synthesizer']:g}, and the GPUs of {key}.placement_group_bundles are "
                f"for vLLM's workers, which could not start: set {key}.num_gpus to 0"
            )
            self._shares["synthesizer"] = 0.0
        room = synthesizer.placement_group_bundles[0].CPU if synthesizer.placement_group_bundles else 0.0
        if synthesizer.num_cpus > room:
            faults.append(
                f"{key}.num_cpus is {synthesizer.num_cpus:g}, more than the CPU {room:g} of the first of "
                f"{key}.placement_group_bundles, where the replica runs: set {key}.num_cpus to {room!r}"
            )
        return faults

    def _sum_faults(self) -> list[str]:
        """All replicas together fit the GPUs there are. Nothing is said of a cluster, whose nodes come and go."""
        gpus = self._settings.gpus
        demands = {name: self._demand(name) for name in self._shares}
        total = sum(demands.values())
        if gpus is None or total <= gpus + _ROUNDING:
            return []
        parts = " + ".join(f"{name} {demand:g}" for name, demand in demands.items() if demand)
        said = f"the deployments reserve {parts} = {total:g} GPUs, more than gpus {gpus}: "
        largest = max(self._shares, key=lambda name: self._shares[name])
        replicas = self._deployments[largest].most_replicas
        left = math.floor(100 * (gpus - (total - self._shares[largest] * replicas)) / replicas + _ROUNDING) / 100
        if left > 0.0 and self._shares[largest]:
            self._shares[largest] = left
            return [f"{said}set deployments.{largest}.num_gpus to {left!r} or less"]
        return [f"{said}set gpus to {math.ceil(total - _ROUNDING)} where there are as many, or start fewer replicas"]

    def _demand(self, name: str) -> float:
        each = self._shares[name] + (self._bundle_gpus if name == "synthesizer" else 0)
        return each * self._deployments[name].most_replicas

    def _memory_faults(self) -> list[str]:
        """Nobody may take a greater share of a GPU's memory than it reserves of the GPU."""
        models = self._settings.models
        faults: list[str] = []
        if self._shares["synthesizer"] or self._bundle_gpus:
            if models.synthesizer.kv_cache_gib is not None:
                faults.append(
                    "models.synthesizer.kv_cache_gib makes vLLM take memory without regard to gpu_memory_utilization "
                    "on a GPU: set models.synthesizer.kv_cache_gib to null"
                )
            share = 1.0 if self._bundle_gpus else self._shares["synthesizer"]
            asked: float | None = models.synthesizer.gpu_memory_utilization
            faults += _too_much("models.synthesizer.gpu_memory_utilization", asked, "synthesizer", share)
        for name in self._device_keys():
            if name != "retriever":  # FAISS takes what the index needs and cannot be bounded
                asked = getattr(models, name).gpu_memory_share
                faults += _too_much(f"models.{name}.gpu_memory_share", asked, name, self._shares[name])
        return faults


def _too_much(key: str, asked: float | None, name: str, share: float) -> list[str]:
    if asked is None or asked <= share + _ROUNDING:
        return []
    return [
        f"{key} is {asked:g}, more than the share of a GPU that the deployment reserves (deployments.{name}.num_gpus, "
        f"{share:g}), so that others on the same GPU would lack it: set {key} to {share!r}"
    ]
