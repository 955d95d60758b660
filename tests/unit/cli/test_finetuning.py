"""``answer finetune``: what it is given goes on to ``python -m finetune``, in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from serving.cli import main


def test_its_words_go_on_and_its_status_comes_back() -> None:
    words = ["finetune", "citation", "--config", "none.yaml", "--set", "epochs=2", "--check-data"]
    done = subprocess.run(
        [sys.executable, "-m", "serving.cli.main", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "error: none.yaml cannot be read" in done.stderr


def test_without_the_extra_it_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "peft" else found(name, *rest))
    result = CliRunner().invoke(main.app, ["finetune", "citation"])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == ["answer: fine-tuning needs peft: pip install 'openindex-answer[finetune]'"]
