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


def test_the_shipped_files_are_read() -> None:
    assert load(CitationSettings, CONFIGS / "citation.yaml").data.qa


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
