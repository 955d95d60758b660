"""``answer gaps``, as a person runs it: over a real database, and at a real HTTP server."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from serving.answer.errors import UnavailableError
from serving.answer.types import DeclineReason
from serving.answer.wire import Answer, Versions
from serving.cli import main
from serving.gaps.database import FILE_NAME, Database
from serving.gaps.records import RETRY_PREFIX, GapQuery, State
from serving.gaps.settings import GapsSettings, Questions
from serving.gaps.store import GapStore
from serving.gateway.http import create_api
from tests.unit.cli.test_cli import listening
from tests.unit.gaps.fakes import asking, declined
from tests.unit.gateway.fakes import FakeBackend, answered

QUESTIONS = ("What does chain do?", "What does zip do?", "What does map do?")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path))
    for name in ("ANSWER_URL", "ANSWER_BEGAN", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def store(home: Path) -> Iterator[GapStore]:
    """The very database that the command opens, with gaps 1 to 3; the second was asked twice."""
    made = GapStore(Database(None, home=home), GapsSettings())
    made.write([asking(question, minutes=minute) for minute, question in enumerate(QUESTIONS)])
    made.write([asking("what does zip do", answer=declined("r2", reason=DeclineReason.NOTHING_PROVEN))])
    yield made
    made.database.close()


def gaps(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, ["gaps", *arguments], prog_name="answer")


def states(store: GapStore) -> dict[int, str]:
    return {gap.id: gap.state.value for gap in store.page(GapQuery(state=None)).gaps}


def test_the_list_shows_the_most_asked_first(store: GapStore) -> None:
    result = gaps("list")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert "2×" in lines[0]
    assert "nothing_proven" in lines[0]
    assert lines[0].endswith("What does zip do?")
    assert [json.loads(line)["id"] for line in gaps("list", "--json", "--order", "newest").stdout.splitlines()] == [
        3,
        2,
        1,
    ]
    assert len(gaps("list", "--limit", "2").stdout.splitlines()) == 2
    assert gaps("list", "--reason", "nothing_proven").stdout.count("\n") == 1


def test_a_long_list_is_read_page_by_page(store: GapStore) -> None:
    store.write([asking(f"What is {number}?") for number in range(450)])
    assert gaps("list", "--limit", "430").stdout.count("\n") == 430
    assert gaps("list", "--limit", "9000").stdout.count("\n") == 453


def test_resolving_and_reopening(store: GapStore) -> None:
    assert gaps("resolve", "1", "3", "--note", "not our subject").exit_code == 0
    assert states(store) == {1: "resolved", 2: "open", 3: "resolved"}
    assert "not our subject" in gaps("show", "1").stdout
    assert gaps("list").stdout.count("\n") == 1
    assert gaps("list", "--resolved").stdout.count("\n") == 2
    assert gaps("list", "--all").stdout.count("\n") == 3
    assert gaps("reopen", "3").exit_code == 0
    assert states(store) == {1: "resolved", 2: "open", 3: "open"}


def test_show_tells_all_that_is_kept(store: GapStore) -> None:
    shown = gaps("show", "2").stdout
    for told in ("2×", "what does zip do", "nothing_proven", "not_in_passages", "p0", "0.810", "r2", "generation-1"):
        assert told in shown
    whole = json.loads(gaps("show", "2", "--json").stdout)
    assert [asking["request_id"] for asking in whole["askings"]] == ["r2", "r1"]


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("show", "9"), "there is no gap 9", 1),
        (("resolve", "9"), "there is no gap 9", 1),
        (("retry", "9"), "there is no gap 9", 1),
        (("retry",), "--all", 2),
        (("retry", "1", "--all"), "--all", 2),
        (("list", "--open", "--all"), "choose one", 2),
        (("export", "--format", "xml", "-"), "jsonl, csv", 2),
        (("export", "/nowhere/gaps.jsonl"), "cannot be written", 1),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    store: GapStore, arguments: tuple[str, ...], said: str, code: int
) -> None:
    result = gaps(*arguments)
    assert result.exit_code == code, result.output
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert result.stdout == ""


def test_a_database_that_cannot_be_opened_is_said_in_one_line(home: Path) -> None:
    (home / FILE_NAME).mkdir()
    result = gaps("list")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "cannot be used now" in result.stderr


def test_an_empty_backlog_is_no_error(home: Path) -> None:
    result = gaps("list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no gaps\n")


def test_what_strangers_asked_cannot_steer_the_terminal_nor_a_spreadsheet(store: GapStore, tmp_path: Path) -> None:
    store.write([asking("\x1b[2Jgone\nand\u202eback"), asking("=HYPERLINK(1)")])
    assert "\x1b" not in gaps("list").stdout
    assert gaps("list").stdout.count("\n") == 5
    gaps("export", "--format", "csv", str(tmp_path / "gaps.csv"))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "gaps.csv").read_text())))
    assert rows[0]["question"] == "'=HYPERLINK(1)"


def test_exports_hold_every_gap(store: GapStore, tmp_path: Path) -> None:
    gaps("resolve", "1")
    lines = gaps("export", "--all", "-").stdout.splitlines()
    assert [json.loads(line)["question"] for line in lines] == list(reversed(QUESTIONS))
    target = tmp_path / "gaps.csv"
    target.write_text("what was there")
    assert gaps("export", "--format", "csv", str(target)).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert [(row["id"], row["count"], row["reason"]) for row in rows] == [
        ("3", "1", "not_in_passages"),
        ("2", "2", "nothing_proven"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "gaps.csv"))) == ["gaps.csv"]


class Learned(FakeBackend):
    """Answers some questions now, and declines or fails the others."""

    knows: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()

    async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Answer:
        self.asked.append((question, request_id, timeout_s))
        if question in self.breaks:
            raise UnavailableError("the synthesizer is not available")
        if question in self.knows:
            return answered(request_id).model_copy(update={"versions": Versions(index="generation-2")})
        return declined(request_id)


@pytest.fixture
def learned() -> Iterator[tuple[Learned, str]]:
    backend = Learned()
    with listening(create_api(backend, default_timeout_s=9, max_body_bytes=10_000, max_question_chars=100)) as url:
        yield backend, url


def test_retry_closes_what_is_answered_now(store: GapStore, learned: tuple[Learned, str]) -> None:
    backend, url = learned
    backend.knows = ("What does zip do?",)
    result = gaps("retry", "--all", "--url", url)
    assert result.exit_code == 0, result.output
    assert "1 answered and closed, 2 still open, 0 failed, of 3" in result.stderr
    assert [question for question, _, _ in backend.asked] == [QUESTIONS[1], QUESTIONS[0], QUESTIONS[2]]
    assert all(request_id.startswith(RETRY_PREFIX) for _, request_id, _ in backend.asked)
    assert states(store) == {1: "open", 2: "resolved", 3: "open"}
    resolution = store.show(2)[0].resolution
    assert resolution is not None
    assert resolution.answered_request_id == backend.asked[0][1]
    assert resolution.answered_versions == Versions(index="generation-2")
    assert f"answered in request {RETRY_PREFIX}2" in gaps("show", "2").stdout
    assert gaps("retry", "--limit", "1", "--all", "--url", url).exit_code == 0
    assert backend.asked[-1][0] == QUESTIONS[0]  # the longest not retried


def test_retry_of_named_gaps_alone(store: GapStore, learned: tuple[Learned, str]) -> None:
    backend, url = learned
    assert gaps("retry", "3", "--url", url).exit_code == 0
    assert [question for question, _, _ in backend.asked] == [QUESTIONS[2]]


def test_a_failure_leaves_its_gap_open_and_the_others_are_asked(store: GapStore, learned: tuple[Learned, str]) -> None:
    backend, url = learned
    backend.breaks, backend.knows = (QUESTIONS[1],), QUESTIONS
    result = gaps("retry", "--all", "--url", url)
    assert result.exit_code == 1
    assert "2 answered and closed, 0 still open, 1 failed" in result.stderr
    assert states(store) == {1: "resolved", 2: "open", 3: "resolved"}


def test_a_server_that_is_broken_is_not_asked_on(store: GapStore, learned: tuple[Learned, str]) -> None:
    backend, url = learned
    store.write([asking("What is one more?")])
    backend.breaks = (*QUESTIONS, "What is one more?")
    result = gaps("retry", "--all", "--url", url)
    assert result.exit_code == 1
    assert len(backend.asked) == 3
    assert "3 failures in a row" in result.stderr


def test_hashes_cannot_be_asked_again(store: GapStore, learned: tuple[Learned, str]) -> None:
    backend, url = learned
    store.write([asking("secret", settings=GapsSettings(questions=Questions.HASH))])
    result = gaps("retry", "4", "--url", url)
    assert "only their question's hash is kept" in result.stderr
    assert backend.asked == []
    assert "sha256" in gaps("list").stdout


def test_ctrl_c_loses_nothing(store: GapStore, home: Path) -> None:
    """The first is answered and stored; the second is being asked when the person stops it."""

    class Slow(Learned):
        async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Answer:
            if self.asked:
                process.send_signal(signal.SIGINT)
                raise UnavailableError("too late")
            return await super().answer(question, request_id=request_id, timeout_s=timeout_s)

    backend = Slow()
    backend.knows = QUESTIONS
    with listening(create_api(backend, default_timeout_s=9, max_body_bytes=10_000, max_question_chars=100)) as url:
        process = subprocess.Popen(
            [sys.executable, "-m", "serving.cli.main", "gaps", "retry", "--all", "--url", url],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ANSWER_HOME": str(home)},
        )
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "interrupted" in said
    assert "1 answered and closed" in said
    assert "Traceback" not in said
    assert states(store) == {1: "open", 2: "resolved", 3: "open"}
    assert [gap.id for gap in store.page(GapQuery(state=State.RESOLVED)).gaps] == [2]
