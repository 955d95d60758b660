"""Runs a job under Ray Train: several workers, GPUs by setting, and a restart from the run's checkpoints after a loss.

The run's folder is the only store: every worker sees it, the first one writes it. So a job that lost a worker, or was
killed altogether, goes on as a plain process does, and one that was begun on a laptop can be finished on a cluster.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.train import FailureConfig, LoggingConfig, RunConfig, ScalingConfig, TrainingFailedError, UserCallback
from ray.train.torch import TorchConfig, TorchTrainer

from finetune import workers
from finetune.errors import JobError
from finetune.home import home
from finetune.run import Run
from finetune.settings import ClusterSettings, JobSettings
from finetune.training import say
from models.catalog import Catalog
from serving.answer.errors import AnswerError


class Lost(UserCallback):  # type: ignore[misc] # mypy does not follow Ray, which is untyped
    """Says of each restart why it is."""

    def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:  # noqa: ARG002
        for rank, error in sorted(worker_exceptions.items()):
            said = str(error).strip().splitlines() or [type(error).__name__]
            say(f"worker {rank} failed: {said[-1]}")


def train(run: Run, settings: JobSettings, inputs: Any, base: Path) -> None:
    """Trains on the workers that ``settings.cluster`` asks for. Raises :class:`JobError` when the job cannot be done.

    Joins the cluster of ``RAY_ADDRESS`` or one that runs on this machine, and starts one here when there is none.
    ``base`` is where this machine has the model; a node that does not see it locates it by its reference.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ["RAY_CHDIR_TO_TRIAL_DIR"] = "0"  # relative paths are relative to the folder that the job was started in
    os.environ["RAY_TRAIN_ENABLE_PRINT_PATCH"] = "0"  # which has every line printed twice
    mine = not ray.is_initialized()
    if mine:
        _join()
    try:
        _check_resources(settings.cluster)
        _fit(run, settings, inputs, base.absolute())
    finally:
        if mine:
            ray.shutdown()


def _join() -> None:
    try:
        ray.init(log_to_driver=True, logging_level="ERROR")
    except Exception as error:  # Ray raises it bare, among others
        address = os.environ.get("RAY_ADDRESS")
        named = f"the Ray cluster of RAY_ADDRESS ({address}) cannot be joined" if address else "Ray does not start here"
        raise JobError(f"{named}: {error}") from error


def _check_resources(cluster: ClusterSettings) -> None:
    """Says what is missing. A cluster that grows by itself may still give it, so only this machine is judged."""
    there: Mapping[str, float] = ray.cluster_resources()
    short = [
        f"{cluster.workers} workers need {needed:g} {kind}s and there are {there.get(kind, 0):g}"
        for kind, needed in _needed(cluster).items()
        if there.get(kind, 0.0) < needed
    ]
    if not short:
        return
    said = "; ".join(short)
    if len(ray.nodes()) == 1:
        raise JobError(f"{said}: lower cluster.workers, cluster.cpus_per_worker or cluster.gpus_per_worker")
    say(f"{said}: waiting for the cluster to grow")


def _needed(cluster: ClusterSettings) -> dict[str, float]:
    needed = {"CPU": cluster.workers * cluster.cpus_per_worker, "GPU": cluster.workers * cluster.gpus_per_worker}
    return {kind: amount for kind, amount in needed.items() if amount}


def _fit(run: Run, settings: JobSettings, inputs: Any, base: Path) -> None:
    cluster = settings.cluster
    job, folder, held = run.job, run.folder.absolute(), ray.put(inputs)

    def work() -> str | None:
        return _work(job, folder, settings, ray.get(held), base)

    trainer = TorchTrainer(
        work,
        torch_config=TorchConfig(backend="nccl" if settings.device == "cuda" else "gloo"),
        scaling_config=ScalingConfig(
            num_workers=cluster.workers,
            use_gpu=cluster.gpus_per_worker > 0,
            resources_per_worker={kind: amount / cluster.workers for kind, amount in _needed(cluster).items()},
        ),
        run_config=RunConfig(
            name="ray",
            storage_path=str(folder),
            failure_config=FailureConfig(max_failures=cluster.max_failures),
            callbacks=[Lost()],
            logging_config=LoggingConfig(log_level="WARNING"),
        ),
    )
    try:
        refused = trainer.fit().return_value
    except TrainingFailedError as error:
        raise JobError(_reason(error, cluster)) from error
    except RayError as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise JobError(f"Ray failed ({first}): the same command goes on from the last checkpoint") from error
    if refused:
        raise JobError(refused)


def _reason(error: TrainingFailedError, cluster: ClusterSettings) -> str:
    said = str(error).strip().splitlines()
    return (
        f"training failed more than cluster.max_failures ({cluster.max_failures}) times: "
        f"{said[-1] if said else error}. The same command goes on from the last checkpoint"
    )


def _work(job: str, folder: Path, settings: JobSettings, inputs: Any, base: Path) -> str | None:
    """What each worker does. Returns why the job cannot be done, the same at each: a restart would not help."""
    from finetune.jobs import JOBS  # noqa: PLC0415 (the jobs import what only a worker needs)

    run = Run(job, folder)
    with ExitStack() as stack:
        model, fault = _begin(run, settings, base, stack)
        faults = [one for one in workers.gathered(fault) if one]
        if faults:
            return faults[0]
        if workers.agreed(run.finished):
            return None
        try:
            JOBS[job].train(run, settings, inputs, model)
        except JobError as error:
            return str(error)
    return None


def _begin(run: Run, settings: JobSettings, base: Path, stack: ExitStack) -> tuple[Path, str | None]:
    """Where this worker has the model, and why it cannot begin, if so. The first worker holds the run from here on."""
    if not (run.folder / "settings.json").is_file():
        return base, (
            f"a worker on {socket.gethostname()} does not see the run's folder {run.folder}: let cluster.storage name "
            "a folder that all nodes share"
        )
    try:
        if workers.is_first():
            stack.enter_context(run.held())
        return (base if base.is_dir() else Catalog(home()).locate(settings.base, progress=say)), None
    except (JobError, AnswerError) as error:
        return base, str(error)
