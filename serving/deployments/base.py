"""What every model deployment does the same way: log, count its calls, warm up before it is ready, report health."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ray import serve

from models.weights import name_of
from serving.answer.types import Deadline, Phases
from serving.deployments.logs import join_serve_log
from serving.deployments.phases import PhaseMetrics
from serving.deployments.replacing import Replaceable, Report
from serving.settings import DeploymentSettings, EncoderSettings

WARM_UP_S = 300.0


def deadline_in(timeout_s: float) -> Deadline:
    """A deadline on this process's clock, from the seconds that were left when the call was sent."""
    return Deadline.after(timeout_s, time.monotonic)


def encoder_options(chosen: EncoderSettings, deployment: DeploymentSettings) -> dict[str, Any]:
    """What an encoder is made with: its device and portions, and no more of a GPU's memory than it reserves of it."""
    return {
        "threads": chosen.threads,
        "max_tokens": chosen.max_tokens,
        "batch_tokens": chosen.batch_tokens,
        "device": chosen.device,
        "memory_share": chosen.gpu_memory_share or deployment.num_gpus or None,
        "dtype": chosen.dtype,
        "patience_s": chosen.patience_s,
    }


class ModelDeployment:
    """Base of the deployments that run a model. ``calls`` is how often it was asked since the replica started.

    It is healthy while ``_health`` raises nothing: Serve replaces a replica that is not.
    """

    def __init__(self) -> None:
        join_serve_log()
        self._calls = 0
        self._health: Callable[[], None] = lambda: None
        self._metrics = PhaseMetrics(type(self).__name__.removesuffix("Deployment").lower())

    def _count(self) -> None:
        self._calls += 1

    def _measured(self, phases: Phases) -> None:
        """Notes where the time of a call went; the overlap reference knows of none."""
        if phases.total_s:
            self._metrics.record(phases)

    async def calls(self) -> int:
        return self._calls

    async def check_health(self) -> None:
        self._health()


class ReplaceableDeployment(ModelDeployment):
    """Base of those whose model the ``user_config`` can replace. A subclass makes ``_replaceable`` when it starts."""

    _replaceable: Replaceable

    async def reconfigure(self, user_config: Mapping[str, Any]) -> None:
        await self._replaceable.reconfigure(user_config)

    async def report(self) -> Report:
        """Which replica this is, and what its parts are."""
        return Report(replica_name(), self._replaceable.parts)


def replica_name() -> str:
    return str(serve.get_replica_context().replica_id.unique_id)


def encoder_name(reference: str, folder: Path, encoder: str) -> str:
    """What answers call an encoder: by the hash that it is stored under where it has one, else as it calls itself."""
    return name_of(reference, folder) if reference.startswith(("weights:", "shipped:")) else encoder
