"""Job settings: strict, from a file and changes, with faults that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from finetune.citation.settings import CitationSettings
from finetune.errors import JobError
from finetune.settings import load

CONFIGS = Path(__file__).parents[3] / "configs" / "finetune"


def written(folder: Path, text: str) -> Path:
    path = folder / "job.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["citation.yaml", "citation.gpu.yaml"])
def test_the_shipped_files_are_read(name: str) -> None:
    assert load(CitationSettings, CONFIGS / name).data.qa


def test_the_gpu_file_is_for_gpus_and_an_open_base() -> None:
    found = load(CitationSettings, CONFIGS / "citation.gpu.yaml")
    assert found.base.startswith("hub:")
    assert (found.device, found.quantise, found.cluster.under_ray) == ("cuda", True, True)
    sharded = ["quantise=false", "cluster.fsdp=true", "cluster.workers=4"]
    assert load(CitationSettings, CONFIGS / "citation.gpu.yaml", sharded).cluster.fsdp


def test_a_worker_alone_is_a_plain_process() -> None:
    assert not load(CitationSettings, CONFIGS / "citation.yaml").cluster.under_ray
    assert load(CitationSettings, CONFIGS / "citation.yaml", ["cluster.ray=true"]).cluster.under_ray
    assert load(CitationSettings, CONFIGS / "citation.yaml", ["cluster.workers=2"]).cluster.under_ray


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        (["batch_size=6", "cluster.workers=4"], "use a multiple"),
        (["device=cuda", "cluster.gpus_per_worker=1", "cluster.fsdp=true"], "set cluster.workers to 2 or more"),
        (["cluster.workers=2", "cluster.fsdp=true"], "set device to cuda"),
        (["cluster.gpus_per_worker=1"], "set device to cuda"),
        (["device=cuda", "cluster.workers=2"], "set cluster.gpus_per_worker to 1"),
        (["quantise=true"], "set device to cuda"),
        (
            ["device=cuda", "cluster.gpus_per_worker=1", "cluster.workers=2", "cluster.fsdp=true", "quantise=true"],
            "set one of them to false",
        ),
    ],
)
def test_settings_that_do_not_go_together_name_the_fix(tmp_path: Path, changes: list[str], fix: str) -> None:
    with pytest.raises(JobError, match=fix):
        load(CitationSettings, written(tmp_path, "data: {qa: [a.jsonl]}\n"), changes)


def test_changes_win_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "data: {qa: [a.jsonl]}\nepochs: 1\n")
    found = load(CitationSettings, path, ["epochs=2.5", "lora.rank=4", "data.qa=[b.jsonl, c.jsonl]"])
    assert (found.epochs, found.lora.rank, found.data.qa) == (2.5, 4, ("b.jsonl", "c.jsonl"))


@pytest.mark.parametrize(
    ("text", "changes", "named"),
    [
        ("data: {}\nlearning: 1\n", [], "learning"),
        ("data: {}\nepochs: -1\n", [], "epochs"),
        ("data: {}\n", ["lora.rnk=4"], "lora.rnk"),
        ("data: {}\n", ["epochs"], "key=value"),
        ("data: {}\n", ["epochs.x=1"], "epochs"),
        ("[]\n", [], "must hold keys"),
        ("a: [\n", [], "no YAML"),
    ],
)
def test_faults_name_the_key(tmp_path: Path, text: str, changes: list[str], named: str) -> None:
    if changes == ["epochs.x=1"]:
        text += "epochs: 1\n"
    with pytest.raises(JobError, match=named):
        load(CitationSettings, written(tmp_path, text), changes)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"none\.yaml"):
        load(CitationSettings, tmp_path / "none.yaml")
