"""``answer finetune`` is ``python -m finetune``: the job runs, and its status is the command's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiny

pytestmark = pytest.mark.weights


def answer(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "serving.cli.main", "finetune", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_counts_the_data_and_says_what_it_would_make_of_them(tmp_path: Path) -> None:
    done = answer("citation", "--config", str(tiny.config(tmp_path)), "--check-data")
    assert done.returncode == 0
    assert "48 conversations" in done.stderr
    done = answer("citation", "--config", str(tmp_path / "none.yaml"))
    assert done.returncode == 2
    assert "none.yaml cannot be read" in done.stderr
