"""Two workers under Ray Train, over gloo: what they learn, and what is left when one of them is lost."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from finetune.__main__ import main
from finetune.run import COMPLETE
from tests import tiny
from tests.processes import children, command_line

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("dashboard")]

LATE = "checkpoint-60"
"""A checkpoint in the middle of the run: a worker is killed as soon as it is there."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.config(tmp_path_factory.mktemp("tiny"), max_steps=120, checkpoint_steps=30)


def trained(config: Path, run: Path, *sets: str) -> dict[str, torch.Tensor]:
    changes = [word for one in sets for word in ("--set", one)]
    assert main(["citation", "--config", str(config), "--output", str(run), *changes]) == 0
    return load_file(run / "weights" / "adapter_model.safetensors")


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def working() -> list[psutil.Process]:
    return [process for process in children() if "RayTrainWorker" in command_line(process)]


class Killer(threading.Thread):
    """Kills one of the workers once the run has come to :data:`LATE`."""

    def __init__(self, run: Path) -> None:
        super().__init__()
        self.killed: list[int] = []
        self._run = run

    def run(self) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and not (self._run / "checkpoints" / LATE / COMPLETE).exists():
            time.sleep(0.005)
        victim = min(working(), key=lambda process: process.pid)
        victim.kill()
        self.killed.append(victim.pid)


def test_a_lost_worker_changes_nothing(config: Path, tmp_path: Path) -> None:
    """Two workers that are left alone, and two of which one is killed: they learn the same, to the bit."""
    whole = trained(config, tmp_path / "whole", "cluster.workers=2")
    killer = Killer(tmp_path / "broken")
    killer.start()
    broken = trained(config, tmp_path / "broken", "cluster.workers=2")
    killer.join()
    assert killer.killed
    assert whole.keys() == broken.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, broken[name]), name
    assert losses(tmp_path / "broken") == losses(tmp_path / "whole")
    events = list((tmp_path / "broken" / "tensorboard").iterdir())
    assert len(events) == 2  # it was begun twice


def test_two_workers_learn_what_one_does(config: Path, tmp_path: Path) -> None:
    """Step by step, but for rounding: the batches and the weight of each label are the same."""
    trained(config, tmp_path / "two", "cluster.workers=2", "max_steps=20")
    trained(config, tmp_path / "one", "max_steps=20")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
