"""``answer eval`` as a person runs it, on what needs no weights: routes, the overlap verifier, a scripted server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from click.testing import Result
from typer.testing import CliRunner

from serving.answer.errors import DeadlineExceededError
from serving.cli import main
from serving.evaluation import report
from serving.evaluation.report import Report
from serving.gateway.http import create_api
from tests.unit.cli.test_cli import free_port
from tests.unit.gateway.fakes import FakeBackend, answered

ROUTES = [("github login", "search"), ("What does itertools.chain do?", "single_pass"), ("Compare a and b.", "agentic")]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ANSWER_EVAL_DATA", raising=False)


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main.app, ["eval", *arguments], prog_name="answer")
    assert result.exit_code == code, result.output
    return result


def lines(path: Path, rows: list[dict[str, object]], *more: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "".join(f"{line}\n" for line in more))
    return path


def routes(count: int = 3) -> list[dict[str, object]]:
    return [
        {"id": f"r{n}", "query": query, "route": route, "kind": "k"}
        for n, (query, route) in enumerate((ROUTES * count)[:count])
    ]


def read(folder: Path) -> Report:
    return report.load((folder / "report.json").read_bytes())


def test_a_suite_becomes_a_report_and_a_page(tmp_path: Path) -> None:
    path = lines(tmp_path / "route" / "mine.jsonl", routes(6), '{"id": "bad"}')
    result = run(str(path), "--limit", "3")
    made = read(tmp_path / "evaluation" / "mine")
    assert (made.suite.rows, made.suite.chosen, len(made.suite.bad)) == (6, 3, 1)
    assert {metric.name: metric.estimate.value for metric in made.metrics}["accuracy"] == 1
    assert "mine.jsonl:7" in result.stderr
    assert (tmp_path / "evaluation" / "mine" / "report.html").read_text().startswith("<!doctype html>")


def test_the_same_command_goes_on_and_another_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "mine.jsonl", routes(3))
    run("route", "--file", str(path), "--out", "out")
    assert "3 of 3 route rows are finished already" in run("route", "--file", str(path), "--out", "out").stderr
    lines(path, routes(2))
    assert "suite changed" in run("route", "--file", str(path), "--out", "out", code=2).stderr
    run("route", "--file", str(path), "--out", "out", "--fresh")
    assert len(read(Path("out")).cases) == 2


def test_a_guard_that_is_switched_off_is_missed(tmp_path: Path) -> None:
    document = "The lighthouse was lit in 1874 by a keeper of the coast guard with oil from the harbour."
    rows: list[dict[str, object]] = [
        {"id": "a", "document": document, "claim": document, "label": 1},
        {"id": "b", "document": document, "claim": document.replace("1874", "1847"), "label": 0},
    ]
    path = lines(tmp_path / "mine.jsonl", rows)
    counting = ("grounding", "--file", str(path), "--set", "models.verifier.kind=overlap")  # it tells no digits apart
    run(*counting, "--out", "with")
    run(*counting, "--out", "without", "--without", "guards", "--against", "with")
    values = [{m.name: m.estimate.value for m in read(Path(out)).metrics} for out in ("with", "without")]
    assert [each["balanced_accuracy"] for each in values] == [1.0, 0.5]
    assert "Against the earlier report" in Path("without/report.html").read_text()


@contextmanager
def serving(backend: FakeBackend) -> Iterator[str]:
    port = free_port()
    api = create_api(backend, default_timeout_s=5, max_body_bytes=10_000, max_question_chars=500)
    server = uvicorn.Server(uvicorn.Config(api, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def questions(tmp_path: Path, count: int = 4) -> str:
    rows: list[dict[str, object]] = [
        {
            "id": f"q{n}",
            "question": f"Why {n}?",
            "passages": [],
            "answers": ["one iterator of many"],
            "answerable": True,
        }
        for n in range(count)
    ]
    return str(lines(tmp_path / "qa.jsonl", rows))


def test_a_deployment_is_asked_over_its_own_index(tmp_path: Path) -> None:
    with serving(FakeBackend(answer_is=answered())) as url:
        result = run("qa", "--file", questions(tmp_path), "--url", url, "--out", "out")
    assert "answers from its own index" in result.stderr
    made = read(Path("out"))
    assert made.matrix is not None
    assert made.matrix.answerable_answered == 4
    assert {metric.name: metric.estimate.value for metric in made.metrics}["str_em"] == 1


def test_a_dead_server_loses_no_finished_case(tmp_path: Path) -> None:
    path = questions(tmp_path)
    with serving(FakeBackend(answer_is=answered())) as url:
        run("qa", "--file", path, "--limit", "2", "--url", url, "--out", "out")
    stopped = run("qa", "--file", path, "--url", url, "--out", "out", code=1)
    assert "no server at" in stopped.stderr
    assert len(Path("out/cases.jsonl").read_text().splitlines()) == 3  # the head and two cases


def test_an_incident_is_a_failed_case(tmp_path: Path) -> None:
    backend = FakeBackend(error=DeadlineExceededError("late"))
    # Readiness says that the server is there: it is the questions that break.
    backend.ready = _ready  # type: ignore[method-assign]
    with serving(backend) as url:
        run("qa", "--file", questions(tmp_path, 3), "--url", url, "--out", "out")
    made = read(Path("out"))
    assert made.failed == 3
    assert "late" in str(made.cases[0].error)


async def _ready() -> dict[str, bool]:
    return {"synthesizer": True}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("qa",), "ANSWER_EVAL_DATA"),
        (("nothing.jsonl",), "ANSWER_EVAL_DATA"),
        (("qa", "--file", "nothing.jsonl"), "cannot read"),
        (("route", "--file", "r.jsonl", "--url", "http://127.0.0.1:9"), "--url goes with qa"),
        (("route", "--file", "r.jsonl", "--grader", "x"), "leave out --grader"),
        (("qa", "--file", "q.jsonl", "--url", "http://127.0.0.1:9", "--without", "guards"), "leave out --url"),
        (("route", "--file", "r.jsonl", "--against", "no.json"), "--against"),
        (("route", "--file", "r.jsonl", "--raise-floors"), "smoke"),
        ((), "name a suite"),
        (("--log", "no.jsonl"), "cannot read"),
    ],
)
def test_what_cannot_begin_says_why_in_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    lines(tmp_path / "r.jsonl", routes(1))
    questions(tmp_path)
    (tmp_path / "qa.jsonl").rename(tmp_path / "q.jsonl")
    error = [line for line in run(*arguments, code=2).stderr.splitlines() if line.startswith("answer: ")]
    assert len(error) == 1
    assert said in error[0]


def test_stopping_keeps_the_finished_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """A run in a process of its own against a server that stops answering after a few questions, then Ctrl-C."""
    path = questions(tmp_path, 6)
    backend = FakeBackend(answer_is=answered())
    give = backend.answer

    async def slow_from_the_third(question: str, *, request_id: str, timeout_s: float):
        if len(backend.asked) >= 2:
            await asyncio.sleep(30)
        return await give(question, request_id=request_id, timeout_s=timeout_s)

    backend.answer = slow_from_the_third  # type: ignore[method-assign]
    with serving(backend) as url:
        arguments = ["qa", "--file", path, "--url", url, "--out", "out", "--concurrency", "1", "--timeout", "5"]
        child = subprocess.Popen(
            [sys.executable, "-m", "serving.cli.main", "eval", *arguments],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(_cases()) < 3:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        assert child.returncode == 130, said
        assert len(_cases()) == 3  # the head and two cases
        backend.answer = give  # type: ignore[method-assign]
        again = run(*arguments)
    assert "2 of 6 questions are finished already" in again.stderr
    assert len(read(Path("out")).cases) == 6


def _cases() -> list[str]:
    path = Path("out/cases.jsonl")
    return path.read_text().splitlines() if path.exists() else []
