"""Rolling weights out into a running service, under load, with the command that a person uses."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import ray
from ray import serve

from models.weights import content_hash
from serving.answer.seams import Generation
from serving.answer.types import Message
from serving.answer.wire import Answer
from serving.cli.client import ask
from serving.cli.up import Server
from tests.adapters import random_adapter
from tests.cluster.conftest import CONFIG, ROOT
from tests.cluster.questions import ANSWERABLE

pytestmark = pytest.mark.cluster

STREAMS = 3
TIMEOUT_S = 300.0
"""No answer takes so long, however busy the machine is: a request that fails was failed by what is tested."""

QUESTIONS = [question.text for question in ANSWERABLE][:4]


def answer(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "serving.cli.main", "weights", *arguments, "--config", str(CONFIG)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def use(which: str) -> subprocess.CompletedProcess[str]:
    return answer("use", "citation", which, "--address", ray.get_runtime_context().gcs_address)


@pytest.fixture(scope="module")
def stored(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Two adapters in the store, by hash. Afterwards the service writes as the other tests expect it."""
    folder = tmp_path_factory.mktemp("adapters")
    hashes = []
    for seed in (1, 2):
        done = answer("add", "citation", str(random_adapter(folder / str(seed), seed)))
        assert done.returncode == 0, done.stderr
        hashes.append(done.stdout.strip())
    assert hashes[0] == content_hash(folder / "1")
    yield hashes[0], hashes[1]
    done = use("base")
    assert done.returncode == 0, done.stderr


class Load:
    """Streams that ask without a pause. ``answers`` come with the moments when they were asked for and came."""

    def __init__(self, url: str) -> None:
        self.answers: list[tuple[float, float, Answer]] = []
        self.failures: list[Exception] = []
        self._url = url
        self._stop = threading.Event()

    def run(self, stream: int) -> None:
        turn = stream
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                replied = ask(self._url, QUESTIONS[turn % len(QUESTIONS)], TIMEOUT_S)
                self.answers.append((began, time.monotonic(), replied))
            except Exception as error:
                self.failures.append(error)
            turn += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(STREAMS) as streams:
            running = [streams.submit(self.run, stream) for stream in range(STREAMS)]
            try:
                yield
            finally:
                self._stop.set()
        for one in running:
            one.result()

    def wait_for_more(self) -> None:
        """Until each stream has been answered something that it asked after this was called."""
        began, seen = time.monotonic(), STREAMS
        while sum(asked > began for asked, _, _ in list(self.answers)) < seen and not self.failures:
            assert time.monotonic() < began + TIMEOUT_S, "no answers come"
            time.sleep(0.1)


def written_by(replied: Answer) -> str:
    """The part of ``versions`` that names the adapter; empty when the model was not asked."""
    return replied.versions.synthesizer.partition("+")[2]


def replies() -> list[tuple[str, str]]:
    """What the model writes at temperature 0 with nothing else going on, and with which weights it says it did.

    Asked of the model itself: how much context an answer gives it depends on how fast the machine is just then.
    """
    synthesizer = serve.get_deployment_handle("Synthesizer", app_name="answer").options(stream=True)
    out = []
    for subject in ("foxes", "bread", "the sea"):
        request = Generation((Message("user", f"Write about {subject}."),), f"about-{subject}", max_tokens=40)
        deltas = list(synthesizer.generate.remote(request, timeout_s=TIMEOUT_S))
        [version] = {delta.version for delta in deltas}
        out.append(("".join(delta.text for delta in deltas), version.partition("+")[2]))
    return out


def test_weights_are_rolled_out_and_back_under_load_without_a_failure(server: Server, stored: tuple[str, str]) -> None:
    a, b = stored
    done = use(a)
    assert done.returncode == 0, done.stderr
    first = replies()
    assert {by for _, by in first} == {f"citation@{a}"}

    load = Load(server.url)
    settled: list[tuple[float, float, str]] = []  # from when, until when, what all that is asked is answered with
    with load.running():
        load.wait_for_more()
        for which, made in ((b, b), ("previous", a)):
            done = use(which)
            returned = time.monotonic()
            assert done.returncode == 0, done.stderr
            assert done.stdout.splitlines()[1].endswith(f"+citation@{made}"), done.stdout
            load.wait_for_more()
            settled.append((returned, time.monotonic(), made))
    assert not load.failures

    written = [(asked, came, by) for asked, came, replied in load.answers if (by := written_by(replied))]
    assert {by for _, _, by in written} == {f"citation@{a}", f"citation@{b}"}
    for start, end, made in settled:  # what comes after the end may have waited for the next change
        assert {by for asked, came, by in written if start < asked and came < end} == {f"citation@{made}"}
    assert replies() == first
    assert use(b).returncode == 0
    assert {text for text, _ in replies()}.isdisjoint({text for text, _ in first})


def test_what_cannot_be_used_is_refused_and_the_old_goes_on(
    server: Server, stored: tuple[str, str], tmp_path: Path
) -> None:
    a, b = stored
    assert use(a).returncode == 0
    unknown = use("0123456789ab")
    assert unknown.returncode == 1
    assert unknown.stderr.count("\n") == 1
    assert a in unknown.stderr
    assert b in unknown.stderr

    misfit = answer("add", "citation", str(random_adapter(tmp_path / "misfit", 3, width=64))).stdout.strip()
    refused = use(misfit)
    assert refused.returncode == 1
    assert "was not trained on" in refused.stderr
    assert "goes on serving" in refused.stderr
    assert written_by(ask(server.url, QUESTIONS[0], TIMEOUT_S)) == f"citation@{a}"
    again = use(a)
    assert again.returncode == 0, again.stderr
