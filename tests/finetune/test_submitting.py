"""A job that is submitted to a Ray cluster: it trains there, its log comes back, and its end is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from finetune.__main__ import main
from tests import tiny

pytestmark = pytest.mark.cluster


def test_a_submitted_job_trains(dashboard: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config, run = tiny.config(tmp_path, data_root=None), tmp_path / "run"
    asked = ["citation", "--config", str(config), "--data", str(tmp_path), "--output", str(run), "--submit", dashboard]
    assert main([*asked, "--set", "max_steps=6"]) == 0
    assert (run / "weights" / "adapter_model.safetensors").is_file()
    said = capfd.readouterr().err
    assert "submitted raysubmit_" in said
    assert "step 6 of 6" in said
    assert said.rstrip().endswith("succeeded")


def test_a_job_that_fails_there_fails_here(dashboard: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tiny.config(tmp_path)
    (tmp_path / "tiny.train.jsonl").unlink()
    assert main(["citation", "--config", str(config), "--submit", dashboard]) == 1
    said = capfd.readouterr().err
    assert "tiny.train.jsonl" in said
    assert said.rstrip().endswith("failed")
