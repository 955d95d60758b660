"""``answer finetune``: what it is given goes on to ``python -m finetune``, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest
from typer.testing import CliRunner

from serving.cli import main


def test_its_words_go_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fake in place of exec, which would replace the tests' own process."""
    run: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: run.append([path, *words]))
    words = ["citation", "--config", "c.yaml", "--set", "epochs=2", "--check-data", "-v"]
    assert CliRunner().invoke(main.app, ["finetune", *words]).exit_code == 0
    assert run == [[sys.executable, sys.executable, "-m", "finetune", *words]]


def test_without_the_extra_it_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "peft" else found(name, *rest))
    result = CliRunner().invoke(main.app, ["finetune", "citation"])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == ["answer: fine-tuning needs peft: pip install 'openindex-answer[finetune]'"]
