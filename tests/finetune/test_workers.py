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

LATE = "checkpoint-80"
"""A checkpoint in the middle of the run: a worker is killed as soon as it is there."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.config(tmp_path_factory.mktemp("tiny"), max_steps=200, checkpoint_steps=40)


def trained(config: Path, run: Path, *sets: str) -> dict[str, torch.Tensor]:
    changes = [word for one in sets for word in ("--set", one)]
    assert main(["citation", "--config", str(config), "--output", str(run), *changes]) == 0
    return load_file(run / "weights" / "adapter_model.safetensors")


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
    """Two workers that are left alone, two of which one is killed, and one alone: they learn the same."""
    whole = trained(config, tmp_path / "whole", "cluster.workers=2")
    killer = Killer(tmp_path / "broken")
    killer.start()
    broken = trained(config, tmp_path / "broken", "cluster.workers=2")
    killer.join()
    assert killer.killed
    assert whole.keys() == broken.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, broken[name]), name
    steps = [json.loads(line)["step"] for line in (tmp_path / "broken" / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 201))
    events = list((tmp_path / "broken" / "tensorboard").iterdir())
    assert len(events) == 2  # it was begun twice

    alone = trained(config, tmp_path / "alone")
    learned = max(float(tensor.abs().max()) for tensor in alone.values())
    for name, tensor in alone.items():
        torch.testing.assert_close(tensor, whole[name], atol=0.01 * learned, rtol=0.02)
