"""One real server for all cluster tests: Ray Serve, vLLM, MiniLM, tantivy and FAISS, on this machine's CPU."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.cli.console import Steps
from serving.cli.up import Server, prepare
from serving.settings import Settings, default_home, load
from tests.processes import assert_ended, children

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


@pytest.fixture(scope="package")
def embedded() -> Settings:
    """The embedded target's settings, models and default index in place."""
    os.environ["ANSWER_HOME"] = str(home())
    settings, _ = load(CONFIG)
    prepare(settings, CONFIG, Steps())
    return settings


@pytest.fixture(scope="package")
def server(embedded: Settings) -> Iterator[Server]:
    """The embedded target, running. When it has stopped, nothing that it started is left."""
    before = children()
    running = Server(embedded, {"host": "127.0.0.1", "port": free_port()}, verbose=False)
    try:
        running.start(Steps())
        yield running
    finally:
        running.stop()
    assert_ended(children() - before)
