"""The ``answer`` command, as a person runs it: what it prints where, its exit codes, its one-line errors."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import httpx
import pytest
import ray
import uvicorn
from click.testing import Result
from ray import serve
from typer.testing import CliRunner

from serving.answer import prompt
from serving.answer.errors import OverloadedError
from serving.answer.wire import Answer
from serving.cli import client, console, main, up
from serving.cli.console import Steps
from serving.deployments.front import CALLBACK_VARIABLE
from serving.gateway.http import create_api
from serving.settings import Settings
from tests.unit.gateway.fakes import FakeBackend, answered, declined, searched

QUESTION = "What does chain do?"


def fail_to_start(*_: object, **__: object) -> None:
    raise AssertionError("a unit test starts, prepares and indexes nothing")


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(up, "run", fail_to_start)
    monkeypatch.setattr(up.Catalog, "locate", fail_to_start)
    monkeypatch.setattr(up.indexing, "index_installed", fail_to_start)
    monkeypatch.setattr(up.indexing, "index_sources", fail_to_start)
    for name in ("ANSWER_URL", "ANSWER_BEGAN", "FORCE_COLOR", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path / "home"))


def answer(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments), prog_name="answer")


def reason(result: Result, code: int = 1) -> str:
    """The one line on stderr with which a command failed."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("answer: ")
    return str(result.stderr)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def listening(app: object) -> Iterator[str]:
    """A real HTTP server on the loopback."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off"))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture(scope="module")
def shared_url(backend: FakeBackend) -> Iterator[str]:
    api = create_api(backend, default_timeout_s=9, max_body_bytes=10_000, max_question_chars=100)
    with listening(api) as url:
        yield url


@pytest.fixture
def url(shared_url: str, backend: FakeBackend) -> str:
    backend.__init__()  # type: ignore[misc]  # as new for each test, behind the one server
    return shared_url


# The whole


def test_help_names_the_commands() -> None:
    result = answer("--help")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("up", "ask", "index", "search"))


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "serving.cli.main", "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: answer" in done.stdout


@pytest.mark.parametrize("command", ["up", "ask", "index", "search", "errors"])
def test_each_command_has_help(command: str) -> None:
    assert answer(command, "--help").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [("frobnicate",), ("ask",), ("ask", "x", "--timeout", "0"), ("up", "--port", "0"), ("search", "x", "--limit", "0")],
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    assert answer(*arguments).exit_code == 2


# ask


def test_ask_without_a_server_says_how_to_start_one() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    said = reason(answer("ask", QUESTION, "--url", url))
    assert url in said
    assert "`answer up`" in said
    assert "--url" in said


@pytest.mark.parametrize("url", ["nonsense", "http://", "ftp://127.0.0.1", "http://[::", "http://127.0.0.1:99999"])
def test_ask_of_what_is_no_address(url: str) -> None:
    assert "Traceback" not in reason(answer("ask", QUESTION, "--url", url))


def test_ask_prints_plain_text_to_a_pipe(url: str, backend: FakeBackend) -> None:
    result = answer("ask", QUESTION, "--url", url, "--timeout", "33")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.startswith("Chain makes one iterator of many [1].\n\n[1] itertools.chain")
    assert "\x1b" not in result.stdout
    assert [(question, timeout) for question, _, timeout in backend.asked] == [(QUESTION, 33.0)]


def test_ask_json_is_the_answer(url: str) -> None:
    result = answer("ask", QUESTION, "--json", "--url", url)
    got = Answer.model_validate_json(result.stdout)
    assert got == answered(got.request_id)


def test_ask_takes_its_server_from_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSWER_URL", f"{url}/")
    assert answer("ask", QUESTION).exit_code == 0


def test_a_decline_and_search_results_are_no_failure(url: str, backend: FakeBackend) -> None:
    backend.answer_is = declined()
    assert answer("ask", QUESTION, "--url", url).stdout.startswith("The passages do not answer this.\n")
    backend.answer_is = searched()
    result = answer("ask", "pypi login", "--url", url)
    assert (result.exit_code, result.stdout) == (0, "Nothing found.\n")


def test_ask_passes_on_what_the_server_says(url: str, backend: FakeBackend) -> None:
    backend.error = OverloadedError("too much is waiting\nnow \x1b[31m", retry_after_s=1)
    said = reason(answer("ask", QUESTION, "--url", url))
    assert "too much is waiting now" in said
    assert "overloaded, request " in said
    assert "\x1b" not in said


def test_a_proxy_is_not_asked_for_this_machine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert answer("ask", QUESTION, "--url", url).exit_code == 0
    assert client.ready(url)


def test_a_proxy_is_asked_for_another_machine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", url)
    monkeypatch.setattr(client, "_is_here", lambda _url: False)
    monkeypatch.setenv("NO_PROXY", "")
    # The proxy of this test answers for every host: with its answer, the name was never looked up.
    assert client.ready("http://answers.invalid")


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:8000", True),
        ("http://localhost:8000", True),
        ("http://0.0.0.0:8000", True),
        ("http://192.0.2.1:8000", False),
        ("https://answers.example", False),
    ],
)
def test_what_is_on_this_machine(url: str, here: bool) -> None:
    assert client._is_here(url) is here


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>hello</html>"),
        (200, b'{"answer": 42}'),
        (502, b"<html>bad gateway</html>"),
        (500, b'{"error": "x"}'),
        (500, b'{"error": {}}'),
        (500, b"\xff\xfe"),
        (500, b"[]"),
    ],
)
def test_ask_of_another_kind_of_server(status: int, body: bytes) -> None:
    async def other(_scope: object, _receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": body})  # type: ignore[operator]

    with listening(other) as address:
        said = reason(answer("ask", QUESTION, "--url", address))
    assert str(status) in said or "no answer engine" in said


def test_ready_is_what_the_server_says(url: str, backend: FakeBackend) -> None:
    assert client.ready(url)
    backend.models = {"synthesizer": False}
    assert not client.ready(url)
    assert not client.ready(f"http://127.0.0.1:{free_port()}")


# index and search


@pytest.mark.parametrize("arguments", [(), ("README.md", "--installed")])
def test_index_wants_files_or_what_is_installed(arguments: tuple[str, ...]) -> None:
    assert "--installed" in reason(answer("index", *arguments), code=2)


def test_search_without_an_index_says_how_to_build_one() -> None:
    said = reason(answer("search", "chain"))
    assert "`answer index --installed`" in said


def test_a_wrong_configuration_exits_2_with_its_fault(tmp_path: Path) -> None:
    config = tmp_path / "x.yaml"
    assert "does not exist" in reason(answer("search", "x", "--config", str(config)), code=2)
    config.write_text("applications: [{args: {tyop: 1}}]")
    assert "tyop" in reason(answer("up", "--config", str(config)), code=2)


@pytest.mark.parametrize("options", ["[host]", "8000", "{port: high}", "{host: 5}"])
def test_http_options_that_are_none(tmp_path: Path, options: str) -> None:
    config = tmp_path / "x.yaml"
    config.write_text(f"http_options: {options}\napplications: [{{}}]")
    assert "http_options" in reason(answer("up", "--config", str(config)), code=2)


# up


def test_the_command_line_wins_over_the_files_http_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "x.yaml"
    config.write_text("http_options: {host: 0.0.0.0, port: 9000, root_path: /a}\napplications: [{}]")
    seen: list[dict[str, object]] = []

    def fake_run(_settings: object, http: dict[str, object], **_: object) -> Answer:
        seen.append(http)
        return answered()

    monkeypatch.setattr(up, "run", fake_run)
    for arguments in ((), ("--port", "9001", "--host", "127.0.0.2")):
        assert answer("up", "--config", str(config), "--ask", QUESTION, *arguments).exit_code == 0
    assert seen == [
        {"host": "0.0.0.0", "port": 9000, "root_path": "/a"},
        {"host": "127.0.0.2", "port": 9001, "root_path": "/a"},
    ]


def up_apart(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``answer up`` in a process of its own: it takes signals and file descriptors for itself."""
    return subprocess.run(
        [sys.executable, "-m", "serving.cli.main", "up", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_port_that_is_taken_is_one_line_that_names_the_option() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        done = up_apart("--port", str(port), "--ask", QUESTION)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"answer: port {port} is taken; stop what listens on it, or choose another with --port {port + 1}\n"
    )


def test_a_host_that_is_not_ours() -> None:
    said = io.StringIO()
    with pytest.raises(SystemExit), redirect_stderr(said):
        up.check_port("203.0.113.1", 8000)
    assert "cannot listen on 203.0.113.1:8000" in said.getvalue()
    assert "--host" in said.getvalue()


def test_a_free_port_is_left_free() -> None:
    port = free_port()
    up.check_port("127.0.0.1", port)
    up.check_port("127.0.0.1", port)


def test_a_home_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = up_apart("--port", str(free_port()), ANSWER_HOME=str(tmp_path / "file" / "home"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "set ANSWER_HOME to a folder you can write to" in done.stderr


def test_a_home_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Asked of the system: root may write where the mode says that nobody may.
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)
    settings = Settings(home=tmp_path)
    with pytest.raises(SystemExit):
        up.prepare(settings, None, Steps())
    assert "set ANSWER_HOME to a folder you can write to" in capsys.readouterr().err


def test_a_disk_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(up, "NEEDED_BYTES", 2**62)
    with pytest.raises(SystemExit):
        up.prepare(Settings(home=tmp_path), None, Steps())
    assert "ANSWER_HOME" in capsys.readouterr().err


def test_index_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("serving.cli.indexing.index_sources", refuse)
    assert "Permission denied" in reason(answer("index", str(tmp_path)))


def test_a_server_that_was_not_started_has_nothing_to_stop() -> None:
    server = up.Server(Settings(), {"host": "127.0.0.1", "port": 1}, verbose=False)
    server.stop()
    assert server.url == "http://127.0.0.1:1"
    assert not server.started


@pytest.mark.parametrize("verbose", [False, True])
def test_stopping_is_quiet_about_all_but_its_own_failure(
    verbose: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[str] = []

    def fake_shutdown() -> None:
        print("(raylet) Task failed")
        sys.stderr.write("our own word\n")
        raise RuntimeError("Serve did not stop")

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "shutdown", lambda: stopped.append("ray"))
    monkeypatch.setattr(serve, "shutdown", fake_shutdown)
    server = up.Server(Settings(), {"host": "127.0.0.1", "port": 1}, verbose=verbose)
    server.started = True
    with pytest.raises(RuntimeError, match="Serve did not stop"):
        server.stop()
    assert stopped == ["ray"]
    out, err = capsys.readouterr()
    assert out == ("(raylet) Task failed\n" if verbose else "")
    assert err == "our own word\n"
    server.stop()
    assert stopped == ["ray"]


@pytest.mark.parametrize(("verbose", "level"), [(False, logging.WARNING), (True, logging.INFO)])
def test_serve_tells_its_news_only_when_asked_to(verbose: bool, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool]] = []

    def fake_init(*, log_to_driver: bool, **_: object) -> None:
        seen.append((logger.level, log_to_driver))
        raise RuntimeError("no cluster in a unit test")

    logger = logging.getLogger("ray.serve")
    before = logger.level
    monkeypatch.setattr(ray, "init", fake_init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", CALLBACK_VARIABLE):
        monkeypatch.setenv(name, "0")  # set by start; put back after the test
    server = up.Server(Settings(), {"host": "127.0.0.1", "port": 1}, verbose=verbose)
    logger.setLevel(logging.INFO)
    try:
        with pytest.raises(RuntimeError, match="no cluster"):
            server.start(Steps())
    finally:
        logger.setLevel(before)
    assert seen == [(level, verbose)]
    assert server.started  # what was begun is to be stopped


# What is said where


def test_steps_say_how_long_it_took(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSWER_BEGAN", str(int(time.time()) - 70))
    Steps().say("indexed\x1b[2J")
    for nonsense in ("", "soon", "²", "99999999999", "5"):
        monkeypatch.setenv("ANSWER_BEGAN", nonsense)
        Steps().say("began now")
    out, err = capsys.readouterr()
    assert out == ""
    first, *others = err.splitlines()
    assert first in {"[  70s] indexed\ufffd[2J", "[  71s] indexed\ufffd[2J"}
    assert others == ["[   0s] began now"] * 5


def test_steps_say_progress_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps()
    steps.say("one")
    steps.every("too soon")
    monkeypatch.setattr(console, "EVERY_S", 0.0)
    steps.every("two")
    assert [line.split("] ")[1] for line in capsys.readouterr().err.splitlines()] == ["one", "two"]


def test_fail_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        console.fail("line one\n  line two \x1b[31m", code=3)
    assert caught.value.code == 3
    assert capsys.readouterr().err == "answer: line one line two \ufffd[31m\n"


def test_only_the_result_reaches_stdout() -> None:
    code = """
import os, subprocess, sys
from serving.cli.console import stdout_for_result, write_all
print("before")
with stdout_for_result() as result:
    print("a library")
    os.write(1, b"a C library\\n")
    subprocess.run([sys.executable, "-c", "print('a child')"], check=True)
    write_all(result, "the result é\\n")
print("after")
try:
    with stdout_for_result():
        print("inside")
        raise ValueError
except ValueError:
    print("restored")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode() == "before\nthe result é\nafter\nrestored\n"
    assert sorted(done.stderr.decode().splitlines()) == ["a C library", "a child", "a library", "inside"]


def test_a_large_result_is_written_whole() -> None:
    code = "from serving.cli.console import *\nwith stdout_for_result() as fd: write_all(fd, 'x' * 3_000_000)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"x" * 3_000_000


def test_the_client_gives_the_server_time_to_say_that_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def fake_post(_url: str, *, timeout: float, **_: object) -> httpx.Response:
        seen.append(timeout)
        raise httpx.ReadTimeout("timed out")

    monkeypatch.setattr(httpx, "post", fake_post)
    with pytest.raises(client.ServerError, match="ReadTimeout"):
        client.ask("http://127.0.0.1:1", QUESTION, 5.0)
    assert seen[0] > 5.0


# answer prompt


def test_the_prompt_is_printed_with_the_hash_that_answers_carry() -> None:
    printed = CliRunner().invoke(main.app, ["prompt", "--json"])
    assert printed.exit_code == 0
    system, user = prompt.templates()
    assert json.loads(printed.stdout) == {"system": system, "user": user, "version": prompt.version()}
    shown = CliRunner().invoke(main.app, ["prompt"])
    assert shown.exit_code == 0
    for text in (system, *user.splitlines(), prompt.version()):
        assert text in shown.stdout


def test_the_prompt_is_that_of_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "x.yaml"
    config.write_text("applications: [{args: {answer: {grammar: structured}}}]")
    printed = CliRunner().invoke(main.app, ["prompt", "--json", "--config", str(config)])
    assert json.loads(printed.stdout)["system"] == prompt.templates(as_json=True)[0]
