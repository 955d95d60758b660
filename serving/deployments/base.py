"""What every model deployment does the same way: log, count its calls, warm up before it is ready, report health."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ray import serve

from models.swapping import Swap
from models.weights import name_of
from serving.answer.types import Deadline, Phases
from serving.deployments.logs import join_serve_log
from serving.deployments.phases import PhaseMetrics
from serving.deployments.replacing import Part, Replaceable, Report
from serving.settings import DeploymentSettings, EncoderSettings, PairEncoderSettings, Settings

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


def pair_options(settings: Settings, chosen: PairEncoderSettings, deployment: DeploymentSettings) -> dict[str, Any]:
    """What an encoder of pairs is made with: what computes its layers, too, and where that keeps what it prepares."""
    return {**encoder_options(chosen, deployment), "backend": chosen.backend, "home": settings.home}


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


class Held(Protocol):
    """A model of a replica: the name that answers carry for it, its health, and what gives its memory back."""

    @property
    def name(self) -> str: ...

    def health(self) -> None: ...

    def close(self) -> None: ...


H = TypeVar("H", bound=Held)


class EncoderDeployment(ReplaceableDeployment, Generic[H]):
    """Base of those that score pairs. Its ``user_config``: ``model``, a reference, or null for what needs none.

    A new model is loaded beside the old one, which serves its callers to their end.
    """

    _current: Swap[H]

    async def _ready(self, reference: str | None) -> H:
        """The model that ``reference`` names, once it has answered. Raises :class:`~models.errors.ModelError`."""
        raise NotImplementedError

    async def _begin(self, reference: str | None) -> None:
        self._current = Swap(await self._ready(reference))
        part = Part(reference, self._current.current.name, reference)
        self._replaceable = Replaceable({"model": part}, {"model": self._take})

    async def _take(self, reference: str | None) -> str:
        new = await self._ready(reference)
        await self._current.hand_over(new, lambda old: asyncio.to_thread(old.close))
        return new.name

    async def check_health(self) -> None:
        self._current.current.health()

    async def name(self) -> str:
        return self._current.current.name


def replica_name() -> str:
    return str(serve.get_replica_context().replica_id.unique_id)


def encoder_name(reference: str, folder: Path, encoder: str) -> str:
    """What answers call an encoder: by the hash that it is stored under where it has one, else as it calls itself."""
    return name_of(reference, folder) if reference.startswith(("weights:", "shipped:")) else encoder
