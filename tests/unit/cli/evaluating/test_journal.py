"""The file of finished cases: whole lines, the same run only, and nothing lost to a full disk or a killed process."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from serving.cli.evaluating import journal as module
from serving.cli.evaluating.errors import EvaluationError, RunStoppedError
from serving.cli.evaluating.journal import Journal
from serving.evaluation.records import Ranked

RUN = {"suite": "ab", "product": "1"}


def opened(path: Path, run: dict[str, Any] = RUN, *, fresh: bool = False) -> Journal[Ranked]:
    return Journal(path, Ranked, run, fresh=fresh)


def test_finished_cases_are_there_again(tmp_path: Path) -> None:
    first = opened(tmp_path / "a" / "cases.jsonl")
    first.append(Ranked(id="x", scores=(0.5,)))
    first.append(Ranked(id="y", error="unavailable: gone"))
    first.close()
    again = opened(tmp_path / "a" / "cases.jsonl")
    assert again.finished == {"x": Ranked(id="x", scores=(0.5,))}
    assert again.cases["y"].error == "unavailable: gone"
    again.append(Ranked(id="y", scores=(1.0,)))
    again.close()
    assert set(opened(tmp_path / "a" / "cases.jsonl").finished) == {"x", "y"}


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_that_was_cut_off_is_taken_away(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cases.jsonl"
    first = opened(path)
    first.append(Ranked(id="x", scores=(0.5,)))
    first.append(Ranked(id="y", scores=(0.5,)))
    first.close()
    path.write_bytes(path.read_bytes()[:-cut])
    again = opened(path)
    assert set(again.finished) == {"x"}
    again.append(Ranked(id="z"))
    again.close()
    assert set(opened(path).finished) == {"x", "z"}


def test_a_first_line_that_was_cut_off_is_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"run": {"su')
    first = opened(path)
    first.append(Ranked(id="x"))
    first.close()
    assert set(opened(path).finished) == {"x"}


def test_another_run_is_refused_and_its_cases_stay(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    first = opened(path)
    first.append(Ranked(id="x"))
    first.close()
    with pytest.raises(EvaluationError, match=r"product changed.*--fresh"):
        opened(path, {**RUN, "product": "2"})
    assert set(opened(path).finished) == {"x"}
    assert opened(path, {**RUN, "product": "2"}, fresh=True).finished == {}


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("# notes\n")
    with pytest.raises(EvaluationError, match="--out"):
        opened(path)
    assert path.read_text() == "# notes\n"


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EvaluationError, match="--out"):
        opened(tmp_path / "file" / "cases.jsonl")


def test_a_full_disk_keeps_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cases.jsonl"
    first = opened(path)
    first.append(Ranked(id="x"))
    whole = path.read_bytes()
    write = os.write
    calls: list[int] = []

    def half_a_line(file: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[: len(data) // 2])

    monkeypatch.setattr(module.os, "write", half_a_line)
    with pytest.raises(RunStoppedError, match=r"No space left.*1 finished"):
        first.append(Ranked(id="y"))
    assert path.read_bytes() == whole
    monkeypatch.setattr(module.os, "write", write)
    first.append(Ranked(id="y"))
    assert set(first.finished) == {"x", "y"}


def test_every_case_is_flushed_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(module.os, "fsync", flushed.append)
    first = opened(tmp_path / "cases.jsonl")
    first.append(Ranked(id="x"))
    assert len(flushed) == 2  # the head and the case
