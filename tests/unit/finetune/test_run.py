"""Runs: a folder is one run, whatever kills it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finetune.errors import JobError
from finetune.run import COMPLETE, Run, digest
from finetune.settings import JobSettings

DATA = {"a.jsonl": {"sha256": "00", "rows": 3, "left_out": 0}}


def settings(**given: object) -> JobSettings:
    return JobSettings.model_validate({"base": "path:x", **given})


def test_the_same_settings_and_data_are_the_same_run(tmp_path: Path) -> None:
    Run.open("citation", tmp_path, settings(), DATA)
    Run.open("citation", tmp_path, settings(threads=3, data_root="/elsewhere", cluster={"workers": 2}), DATA)
    assert digest(settings(threads=3), DATA) == digest(settings(), DATA) != digest(settings(seed=8), DATA)


@pytest.mark.parametrize(
    ("given", "data", "named"),
    [({"epochs": 2}, DATA, "epochs"), ({}, {"a.jsonl": {"sha256": "01"}}, r"a\.jsonl"), ({}, {}, r"a\.jsonl")],
)
def test_other_settings_or_data_are_refused(
    tmp_path: Path, given: dict[str, object], data: dict[str, object], named: str
) -> None:
    Run.open("citation", tmp_path, settings(), DATA)
    with pytest.raises(JobError, match=named):
        Run.open("citation", tmp_path, settings(**given), data)


def test_only_whole_checkpoints_count(tmp_path: Path) -> None:
    run = Run("citation", tmp_path)
    assert run.last_checkpoint() is None
    for step, whole in ((50, True), (100, True), (150, False)):
        folder = run.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        if whole:
            (folder / COMPLETE).touch()
    last = run.last_checkpoint()
    assert last is not None
    assert last.name == "checkpoint-100"
    assert not (run.checkpoints / "checkpoint-150").exists()


def test_what_was_logged_after_the_checkpoint_is_taken_back(tmp_path: Path) -> None:
    run = Run("citation", tmp_path)
    for step in (10, 20, 30):
        run.log(step, {"loss": 1.0 / step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 40, "lo')  # killed while it was written
    run.forget_after(20)
    steps = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert steps == [10, 20]


def test_weights_are_there_whole_or_not_at_all(tmp_path: Path) -> None:
    run = Run("citation", tmp_path)
    with run.writing_weights() as folder:
        (folder / "a").write_text("1")

    def killed() -> None:
        with run.writing_weights() as folder:
            (folder / "a").write_text("2")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    assert (run.weights / "a").read_text() == "1"
