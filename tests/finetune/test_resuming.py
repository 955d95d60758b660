"""A job that is killed, whenever and however often, ends with the weights that it would have had."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from finetune.__main__ import main
from finetune.run import COMPLETE
from tests import tiny

pytestmark = pytest.mark.weights

forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["finetune.__main__", "peft", "tensorboard", "transformers.trainer"])

MOMENTS = [
    ("finetune.run", "Run.log", 3),  # before the first checkpoint
    ("transformers.trainer", "Trainer._save_optimizer_and_scheduler", 1),  # inside the first, which has an adapter
    ("os", "sync", 1),  # the first is written, and not yet marked as whole
    ("finetune.run", "Run.log", 7),  # between two
    ("torch", "save", 5),  # inside a later one
    ("transformers.trainer", "rotate_checkpoints", 3),  # about to remove an old one
    ("finetune.run", "write_text", 3),  # taking back what was logged too much
    ("finetune.citation.job", "save", 1),  # trained, about to save the weights
    ("pathlib", "Path.rename", 1),  # the weights are written, and not yet in their place
]


def trained(config: Path, run: Path, moment: tuple[str, str, int] | None = None) -> Any:
    """A process that trains, and kills itself at the moment: as the function is called for the n-th time."""
    process = forks.Process(target=_train, args=(config, run, moment))
    process.start()
    return process


def _train(config: Path, run: Path, moment: tuple[str, str, int] | None) -> None:
    gc.freeze()  # what the fork server has imported is no garbage: looking through it would take most of the time
    if moment:
        _die_at(*moment)
    os._exit(main(["citation", "--config", str(config), "--output", str(run)]))


def _die_at(module: str, name: str, nth: int) -> None:
    *owners, last = name.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    function, calls = getattr(owner, last), iter(range(nth - 1))

    def dying(*args: Any, **kwargs: Any) -> Any:
        if next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    setattr(owner, last, dying)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.config(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def expected(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody killed."""
    run = tmp_path_factory.mktemp("expected") / "run"
    process = trained(config, run)
    process.join()
    assert process.exitcode == 0
    return run


def assert_same(run: Path, expected: Path) -> None:
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        assert (run / "weights" / name).read_bytes() == (expected / "weights" / name).read_bytes()
    assert (run / "metrics.jsonl").read_text() == (expected / "metrics.jsonl").read_text()


def test_killed_at_the_worst_moments_it_ends_the_same(config: Path, expected: Path, tmp_path: Path) -> None:
    """One run, killed at each of the moments in turn, and then left alone."""
    run = tmp_path / "run"
    for moment in MOMENTS:
        process = trained(config, run, moment)
        process.join()
        assert process.exitcode == -signal.SIGKILL, moment
        assert not (run / "weights").exists()
    process = trained(config, run)
    process.join()
    assert process.exitcode == 0
    assert_same(run, expected)


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_it_ends_the_same(config: Path, expected: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    run = tmp_path / "run"
    killed, longest = 0, 1.2
    while not (run / "weights").exists():
        process = trained(config, run)
        process.join(rng.uniform(0.0, longest) if killed < 6 else None)
        if process.exitcode is None:
            process.kill()
            killed += 1
        process.join()
        if not killed:  # a fast machine: it had ended before it was to be killed
            shutil.rmtree(run)
            longest /= 2
    assert_same(run, expected)


def test_a_run_that_ended_in_the_middle_of_an_epoch_is_at_its_end(tmp_path: Path) -> None:
    """What is killed between its last checkpoint and its weights takes no step more."""
    config, run = tiny.config(tmp_path / "tiny", max_steps=11), tmp_path / "run"
    for _ in range(2):
        process = trained(config, run)
        process.join()
        assert process.exitcode == 0
        kept = tmp_path / "kept"
        if not kept.exists():
            shutil.copytree(run, kept)
            shutil.rmtree(run / "weights")
    assert_same(run, kept)
    assert {path.name for path in run.glob("checkpoints/*")} == {path.name for path in kept.glob("checkpoints/*")}


def test_a_run_is_trained_by_one_process_at_a_time(config: Path, tmp_path: Path) -> None:
    """Started twice, it is trained once: the second process finds it held, waits, and finds it finished."""
    run = tmp_path / "run"
    both = [trained(config, run) for _ in range(2)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert len(list((run / "tensorboard").iterdir())) == 1
    assert len(list((run / "checkpoints").glob(f"*/{COMPLETE}"))) == 2
