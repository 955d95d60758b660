"""The settings of Ray Serve's side: how many replicas of each deployment there are, and what a replica reserves."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from serving.configuration.strict import Count, Positive, Strict

Amount = Annotated[float, Field(ge=0.0)]


class AutoscalingSettings(Strict):
    """Replicas that follow the load.

    Ray averages the calls that run or wait over ``look_back_period_s`` and divides by ``target_ongoing_requests``: so
    many replicas are wanted. When more (or fewer) have been wanted for the whole delay, it starts (or stops) them.
    """

    min_replicas: Count = 1
    """Not 0: a model that must first be loaded answers too late, and the server is ready only when every part is."""
    max_replicas: Count
    initial_replicas: Count | None = None
    """``min_replicas`` when not set."""
    target_ongoing_requests: Positive = 2.0
    """Calls that one replica should have at hand."""
    look_back_period_s: Annotated[float, Field(gt=10.0)] = 30.0
    """Longer than 10, since replicas report their load every 10 s."""
    upscale_delay_s: Positive = 30.0
    downscale_delay_s: Positive = 600.0
    upscaling_factor: Positive = 1.0
    """Below 1 closes only a part of the gap at a time."""
    downscaling_factor: Positive = 1.0


class DeploymentSettings(Strict):
    """One Serve deployment: its replicas, what each may hold, and how it is watched and stopped."""

    num_replicas: Count | None = None
    """1 when not set. Not beside ``autoscaling``."""
    autoscaling: AutoscalingSettings | None = None
    max_ongoing_requests: Count = 32
    max_queued_requests: Annotated[int, Field(ge=1)] = 64
    num_cpus: Amount = 0.1
    num_gpus: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """The share of one GPU that a replica reserves. Ray puts replicas on a GPU until their shares make 1; it does not
    watch what they use, which is why the memory that a replica may take is set apart and may not be more."""
    health_check_period_s: Positive = 10.0
    health_check_timeout_s: Positive = 60.0
    graceful_shutdown_timeout_s: Positive = 20.0

    @property
    def most_replicas(self) -> int:
        """How many replicas there may be at once."""
        return self.autoscaling.max_replicas if self.autoscaling else self.num_replicas or 1


class Bundle(Strict):
    """What one bundle of a placement group reserves, by Ray's names. vLLM gives each of its workers one GPU."""

    CPU: Amount = 0.0
    GPU: Annotated[int, Field(ge=0, le=1)] = 0

    @model_validator(mode="after")
    def _reserves_something(self) -> Self:
        if not (self.CPU or self.GPU):
            raise ValueError("a bundle reserves something: write {GPU: 1}, or {CPU: 1, GPU: 1} for the first")
        return self

    def for_ray(self) -> dict[str, float]:
        return {name: float(amount) for name, amount in self if amount}


class SynthesizerDeploymentSettings(DeploymentSettings):
    """The synthesizer's, which may span several GPUs: one bundle for each, reserved together for each replica."""

    placement_group_bundles: list[Bundle] | None = Field(default=None, min_length=1)
    """The replica itself runs in the first bundle, so its ``num_cpus`` must fit there."""
    placement_group_strategy: Literal["PACK", "STRICT_PACK", "SPREAD", "STRICT_SPREAD"] = "STRICT_PACK"
    """``STRICT_PACK``: all on one node, where GPUs talk fastest."""

    @property
    def bundle_gpus(self) -> int:
        return sum(bundle.GPU for bundle in self.placement_group_bundles or ())

    def placement(self) -> dict[str, Any]:
        """The options by which Ray reserves the bundles; empty without any."""
        if not self.placement_group_bundles:
            return {}
        return {
            "placement_group_bundles": [bundle.for_ray() for bundle in self.placement_group_bundles],
            "placement_group_strategy": self.placement_group_strategy,
        }


class DeploymentsSettings(Strict):
    gateway: DeploymentSettings = DeploymentSettings(max_ongoing_requests=128, max_queued_requests=256)
    router: DeploymentSettings = DeploymentSettings(max_ongoing_requests=128, max_queued_requests=256)
    retriever: DeploymentSettings = DeploymentSettings(num_cpus=0.2)
    embedder: DeploymentSettings = DeploymentSettings(num_cpus=0.4)
    reranker: DeploymentSettings = DeploymentSettings()
    verifier: DeploymentSettings = DeploymentSettings()
    synthesizer: SynthesizerDeploymentSettings = SynthesizerDeploymentSettings(
        num_cpus=0.6, max_ongoing_requests=16, max_queued_requests=32
    )

    def named(self) -> dict[str, DeploymentSettings]:
        return {name: getattr(self, name) for name in type(self).model_fields}
