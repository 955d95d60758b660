"""The sampled log: who gets into it, what stands in it, how large it grows, and that it never fails an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving.answer.logged import Logged
from serving.cli.evaluating.logs import read_log
from serving.evaluation import online
from serving.gateway.answer_log import AnswerLog
from serving.settings import AnswerLogSettings, Settings, parse
from tests.unit.gateway.fakes import PASSAGE, TEXT, answered, declined, searched

QUESTION = "Who is Ada Byron?"
NOW = datetime(2026, 3, 4, tzinfo=UTC)


def opened(folder: Path, **changes: Any) -> AnswerLog:
    options: dict[str, Any] = {"share": 1.0, "keep_words": False, "max_bytes": 10**6, "keep_files": 2, **changes}
    return AnswerLog(folder, now=lambda: NOW, **options)


def lines(folder: Path) -> list[Logged]:
    return [Logged.model_validate_json(line) for path in folder.glob("*.jsonl") for line in path.open()]


@pytest.mark.parametrize("keep", [False, True])
def test_words_stand_in_it_only_where_they_are_kept(tmp_path: Path, keep: bool) -> None:
    log = opened(tmp_path, keep_words=keep)
    log.offer(QUESTION, answered())
    log.close()
    raw = next(tmp_path.glob("*.jsonl")).read_text()
    assert (QUESTION in raw, TEXT in raw) == (keep, keep)
    assert PASSAGE.text not in raw
    assert next(tmp_path.glob("*.jsonl")).stat().st_mode & 0o077 == 0
    line = lines(tmp_path)[0]
    assert line.passages[0].id == PASSAGE.id
    assert (line.claims[0].citations[0].score, line.at) == (0.93, NOW)


def test_equal_questions_have_equal_hashes(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for question in (QUESTION, f"  {QUESTION.upper()} ", "Who else?"):
        log.offer(question, declined())
    log.close()
    hashes = [line.question_sha256 for line in lines(tmp_path)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_share_of_the_answers_is_written(tmp_path: Path) -> None:
    chances: Iterator[float] = iter([0.1, 0.3, 0.24, 0.9])
    log = opened(tmp_path, share=0.25, chance=lambda: next(chances))
    for number in range(4):
        log.offer(QUESTION, answered(f"r{number}"))
    log.close()
    assert [line.request_id for line in lines(tmp_path)] == ["r0", "r2"]


def test_it_is_off_unless_it_is_set(tmp_path: Path) -> None:
    log = AnswerLog.of(AnswerLogSettings(), tmp_path / "answers")
    log.offer(QUESTION, answered())
    log.close()
    assert not list(tmp_path.iterdir())


def test_it_is_bounded_and_the_newest_is_kept(tmp_path: Path) -> None:
    log = opened(tmp_path, max_bytes=4_000, keep_files=2)
    for number in range(60):
        log.offer(QUESTION, answered(f"r{number}"))
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert sum(path.stat().st_size for path in files) < 3 * (4_000 + 2_500)
    kept = sorted(int(line.request_id[1:]) for line in lines(tmp_path))
    assert kept == list(range(kept[0], 60))


def test_a_log_that_cannot_be_written_loses_lines_and_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    log = opened(tmp_path / "file" / "answers")
    log.offer(QUESTION, answered())
    log.offer(QUESTION, answered())
    log.close()
    assert log.lost == 2
    assert len(caplog.records) == 1


def test_a_lone_surrogate_is_no_fault(tmp_path: Path) -> None:
    log = opened(tmp_path, keep_words=True)
    log.offer("Why \ud800?", answered())
    log.close()
    assert log.lost + len(lines(tmp_path)) == 1


def test_a_setting_of_the_log_is_no_other_product() -> None:
    assert parse({"answer_log": {"share": 0.5, "questions": "keep"}}).version == Settings().version


def test_a_log_is_scored(tmp_path: Path) -> None:
    log = opened(tmp_path, keep_words=True)
    for answer in (answered("r1"), declined("r2"), searched("r3"), answered("r1")):
        log.offer(QUESTION, answer)
    log.close()
    path = next(tmp_path.glob("*.jsonl"))
    with path.open("a") as file:
        file.write('{"cut')
    read, bad, _ = read_log(tmp_path)
    assert (len(read), len(bad)) == (4, 1)
    texts = {read[0].passages[0].sha256: "premise"}
    found = online.score(read, texts, lambda *_: True, np.random.default_rng(0))
    values = {metric.name: (metric.estimate.value, metric.estimate.n) for metric in found.metrics}
    assert values["answered"] == (pytest.approx(2 / 3), 3)
    assert values["weakest_citation"] == (0.93, 2)
    assert values["claims_kept"] == (pytest.approx(1 / 3), 2)
    assert values["citation_recall"] == (1.0, 2)
    assert [case.id for case in found.cases] == ["r1", "r2", "r3", "r1#2"]


def test_what_was_hashed_is_not_graded(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.offer(QUESTION, answered())
    log.close()
    read, _, _ = read_log(tmp_path)
    assert list(online.pairs(read, {read[0].passages[0].sha256: "premise"})) == []
    assert json.loads(next(tmp_path.glob("*.jsonl")).read_text())["question"] is None
