"""Releasing: only surely better weights are shipped, whole, with their metrics and their card."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from finetune import jobs, release
from finetune.__main__ import main
from finetune.jobs import Job
from finetune.judging import Judgement, Measure
from finetune.run import Run, write_json
from finetune.settings import JobSettings

DATA = {"a.train.jsonl": {"reference": "a.train.jsonl", "sha256": "ab" * 32, "rows": 1200, "left_out": 3}}


def fake_judge(_: JobSettings, weights: Path | None, __: Path) -> Judgement:
    """Judges weights whose file holds the share of cases that they get right."""
    share = float((weights / "model.safetensors").read_text()) if weights else 0.5
    right = np.array([random.Random(at).random() < share for at in range(200)], dtype=float)
    cases = tuple(map(str, range(200)))
    return Judgement([Measure("right", cases, lambda rows: float(right[rows].mean()), target=0.7)], decides="right")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path))
    fake = Job("Says yes or no.", JobSettings, lambda _: None, lambda *_: "", lambda *_: None, fake_judge)
    monkeypatch.setattr(jobs, "JOBS", {"citation": fake})
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text("{}")
    (base / "model.safetensors").write_text("0")
    return tmp_path


def trained(home: Path, name: str, share: float, *, filler: int = 0) -> Run:
    run = Run("citation", home / "finetune" / name)
    settings = JobSettings(base=f"path:{home / 'base'}", licences={"a.train.jsonl": "CC0 1.0"})
    run.folder.mkdir(parents=True)
    write_json(run.folder / "settings.json", {"job": "citation"})
    write_json(run.folder / "data.json", DATA)
    write_json(run.folder / "given.json", {"command": "python -m x", "settings": settings.model_dump(mode="json")})
    run.weights.mkdir()
    (run.weights / "model.safetensors").write_text(str(share))
    (run.weights / "filler").write_bytes(bytes(filler))
    return run


def shipping(home: Path, name: str) -> int:
    return main(["release", "citation", name, "--to", str(home / "shipped")])


def test_the_first_weights_must_beat_what_is_served_without(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(home, "poor", 0.45)
    assert shipping(home, "poor") == 2
    assert not (home / "shipped" / "citation").exists()
    assert "not released" in capsys.readouterr().err
    trained(home, "good", 0.8)
    assert shipping(home, "good") == 0
    shipped = home / "shipped" / "citation"
    metrics = json.loads((shipped / "metrics.json").read_text())
    assert metrics["bars"][0]["name"] == "right"
    assert metrics["bars"][0]["ok"]
    assert metrics["bars"][0]["n"] == 200
    assert metrics["compared"]["against"] is None
    assert metrics["compared"]["gain"] > 0.2
    card = (shipped / "README.md").read_text()
    assert "| a.train.jsonl | 1,200 | 3 | `abababababab` | CC0 1.0 |" in card
    assert "python -m x" in card
    assert str(home) not in card.split("base_model")[0]


def test_shipped_weights_give_way_to_better_ones_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, share, code in (("first", 0.7, 0), ("same", 0.71, 2), ("worse", 0.6, 2), ("better", 0.9, 0)):
        trained(home, name, share)
        assert shipping(home, name) == code, name
    said = capsys.readouterr().err
    assert "is -" in said  # by how much a refused one is worse
    assert (home / "shipped" / "citation" / "model.safetensors").read_text() == "0.9"
    assert [path.name for path in (home / "shipped").iterdir()] == ["citation"]


def test_weights_that_are_too_large_are_not_shipped(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(home, "large", 0.9, filler=release.LARGEST)
    assert shipping(home, "large") == 2
    assert "train a smaller adapter" in capsys.readouterr().err
    assert not (home / "shipped" / "citation").exists()


@pytest.mark.parametrize("fault", ["missing", "unfinished", "other job"])
def test_what_is_no_finished_run_of_the_job_is_refused(
    home: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if fault != "missing":
        run = trained(home, "run", 0.9)
        if fault == "unfinished":
            run.weights.rename(run.folder / "elsewhere")
        else:
            write_json(run.folder / "settings.json", {"job": "verifier"})
    assert shipping(home, "run") == 2
    expected = {"missing": "there is no run", "unfinished": "is not finished", "other job": "a run of verifier"}
    assert expected[fault] in capsys.readouterr().err
