"""`answer up` as a person runs it: it starts, says where it is, answers, and Ctrl-C stops everything it started."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from serving.settings import Settings
from tests.cluster.conftest import CONFIG, ROOT, free_port
from tests.processes import assert_ended

pytestmark = pytest.mark.cluster

ANSWER = [sys.executable, "-m", "serving.cli.main"]


def test_up_serves_until_ctrl_c_and_leaves_nothing(embedded: Settings, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "stderr"
    with log.open("w") as stderr:
        command = [*ANSWER, "up", "--config", str(CONFIG), "--port", str(port)]
        # A session of its own: the signal goes to the whole foreground group, as a terminal sends it.
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT, start_new_session=True)
    try:
        wait_for(lambda: "ready at" in log.read_text() or up.poll() is not None, 240)
        assert up.poll() is None, log.read_text()
        said = log.read_text()
        assert f"http://127.0.0.1:{port}/v1/answer" in said
        assert f"ask --url http://127.0.0.1:{port}" in said
        plain = subprocess.run(
            [*ANSWER, "ask", "--url", f"http://127.0.0.1:{port}", "What does itertools.chain do?"],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout
        assert "first iterable until it is exhausted" in plain
        assert "[1] itertools.chain" in plain
        assert "\x1b" not in plain
        started = set(psutil.Process(up.pid).children(recursive=True))
        assert len(started) > 8
        os.killpg(up.pid, signal.SIGINT)
        up.wait(60)
        assert up.stdout is not None
        assert up.stdout.read() == b""
        assert_ended(started)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/healthz")
    finally:
        if up.poll() is None:
            up.kill()


def test_a_taken_port_is_one_line_that_names_the_fix(embedded: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = subprocess.run([*ANSWER, "up", "--port", str(port)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert up.returncode == 1
    assert up.stdout == ""
    assert f"port {port} is taken" in up.stderr
    assert "--port" in up.stderr


def test_up_ask_prints_only_the_answer(embedded: Settings) -> None:
    up = subprocess.run(
        [*ANSWER, "up", "--config", str(CONFIG), "--port", str(free_port()), "--ask", "What does itertools.chain do?"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert up.returncode == 0, up.stderr
    answer = json.loads(up.stdout)
    assert answer["outcome"] == "answered"
    assert "first iterable until it is exhausted" in answer["text"]


def wait_for(done, seconds: float) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "too slow"
        time.sleep(0.2)
