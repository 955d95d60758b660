"""Training data: good rows, counted bad ones, and files that stop a job before it begins."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from finetune import data
from finetune.errors import JobError

ROW = {
    "id": "a-0",
    "question": "When?",
    "passages": [{"title": "T", "text": "It opened in 1889.", "supporting": True}],
    "answers": ["1889"],
    "answerable": True,
}


def test_rows_are_read_and_bad_ones_counted(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.train.jsonl.gz", "wt") as file:
        file.write(json.dumps(ROW) + "\n" + '{"id": "a-1"}\n' + "no json\n" + json.dumps({**ROW, "id": "a-2"}) + "\n")
    (found,) = data.qa(["a.train.jsonl.gz"], tmp_path)
    assert [row.id for row in found.rows] == ["a-0", "a-2"]
    assert [bad.line for bad in found.bad] == [2, 3]
    assert found.describe() == {
        "reference": "a.train.jsonl.gz",
        "sha256": found.sha256,
        "rows": 2,
        "left_out": 2,
    }


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.jsonl", None, "none.jsonl"),
        ("empty.jsonl", b"", "question"),
        ("wrong.jsonl", b'{"id": "1", "query": "x"}\n', "question"),
        ("binary.jsonl", b"\x00\xff\xfe", "question"),
    ],
)
def test_a_file_without_a_good_row_says_what_was_expected(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(JobError, match=said):
        data.qa([name], tmp_path)


def test_held_out_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="held out"):
        data.qa(["qa/clapnq.test.jsonl.gz"], tmp_path)
