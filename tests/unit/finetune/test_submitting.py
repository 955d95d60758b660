"""What is sent to a cluster, and what is said when there is none."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from finetune.__main__ import main
from finetune.citation.settings import CitationSettings
from finetune.errors import JobError
from finetune.run import digest
from finetune.settings import parse
from finetune.submitting import FILE, Order


def settings(**given: object) -> CitationSettings:
    return parse(CitationSettings, {"data": {"qa": ["a.jsonl"]}, **given})


def test_an_order_is_the_same_run_with_paths_that_mean_the_same_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = settings(learning_rate=4e-5, data_root="kit", cluster={"storage": "runs", "workers": 2})
    sent = parse(CitationSettings, Order("citation", given).tree())
    assert digest(sent, {}) == digest(given, {})
    assert sent.data_root == tmp_path / "kit"
    assert sent.cluster.storage == tmp_path / "runs"
    assert sent.cluster.under_ray
    assert parse(CitationSettings, Order("citation", settings()).tree()).data_root == tmp_path


def test_the_command_is_the_same_but_for_the_resolved_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, *words = shlex.split(Order("citation", settings(), output=Path("my run"), check_data=True).command())
    assert words == [
        "-m",
        "finetune",
        "citation",
        "--config",
        FILE,
        "--output",
        str(tmp_path / "my run"),
        "--check-data",
    ]


@pytest.mark.parametrize(
    ("given", "fix"),
    [({"base": "path:models/mine"}, "absolute path"), ({"device": "cuda"}, "set cluster.gpus_per_worker to 1")],
)
def test_what_means_nothing_on_a_cluster_is_refused(given: dict[str, object], fix: str) -> None:
    with pytest.raises(JobError, match=fix):
        Order("citation", settings(**given)).tree()


@pytest.mark.parametrize(("address", "said"), [("http://127.0.0.1:9", "no Ray cluster answers"), ("nowhere://", "no ")])
def test_a_cluster_that_is_not_there_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
    said: str,
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "http://127.0.0.1:10")
    (tmp_path / "job.yaml").write_text("data: {qa: [a.jsonl]}\n")
    assert main(["citation", "--config", str(tmp_path / "job.yaml"), "--submit", address]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert said in error
    assert address in error
    assert "http://HOST:8265" in error
    assert len(error.splitlines()) == 1
