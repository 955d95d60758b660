"""One real server for all cluster tests: Ray Serve, vLLM, MiniLM, tantivy and FAISS, on this machine's CPU."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from serving.cli.console import Steps
from serving.cli.up import Server, prepare
from serving.settings import Settings, default_home, load

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "embedded.yaml"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def home() -> Path:
    """A home of the tests' own, kept between runs, made anew when what makes the index changes."""
    made_of = sorted([*(ROOT / "serving" / "retrieval").glob("*.py"), ROOT / "configs" / "locks" / "cpu.lock"])
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in made_of)).hexdigest()[:12]
    return Path(os.environ.get("ANSWER_TEST_HOME", default_home() / "tests")) / digest


@pytest.fixture(scope="session")
def embedded() -> Settings:
    """The embedded target's settings, models and default index in place."""
    os.environ["ANSWER_HOME"] = str(home())
    settings, _ = load(CONFIG)
    prepare(settings, CONFIG, Steps())
    return settings


@pytest.fixture(scope="session")
def server(embedded: Settings) -> Iterator[Server]:
    """The embedded target, running. When it has stopped, nothing that it started is left."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    running = Server(embedded, {"host": "127.0.0.1", "port": free_port()}, verbose=False)
    try:
        running.start(Steps())
        yield running
    finally:
        running.stop()
    left = [p for p in psutil.Process().children(recursive=True) if p.pid not in before and "tracker" not in name(p)]
    _, alive = psutil.wait_procs(left, timeout=20)
    assert not alive, [name(process) for process in alive]


def name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
