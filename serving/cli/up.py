"""``answer up``: models, index, Ray Serve in the foreground; everything it starts, it stops."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from models.catalog import Catalog
from serving.answer.errors import AnswerError
from serving.answer.wire import Answer
from serving.cli import client, indexing
from serving.cli.console import Steps, fail
from serving.settings import Settings

READY_TIMEOUT_S = 600.0
NEEDED_BYTES = 2 * 2**30
OBJECT_STORE_BYTES = 256 * 2**20


class Stopped(BaseException):
    """The person, or the system, asked the process to stop."""


def _stop(signum: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    raise Stopped(signum)


def _ignore_signals() -> None:
    """Stopping is not to be stopped half-way."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)


def prepare(settings: Settings, config: Path | None, steps: Steps, *, sets: Sequence[str] = ()) -> None:
    """Puts models and the default index in place; what is already there is used again.

    ``config`` and ``sets`` are what the command was given, for the process that builds the index.
    """
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"{settings.home} cannot be made ({error.strerror}); set ANSWER_HOME to a folder you can write to")
    if not os.access(settings.home, os.W_OK | os.X_OK):
        fail(f"{settings.home} cannot be written to; set ANSWER_HOME to a folder you can write to")
    catalog = Catalog(settings.home)
    chosen = settings.models
    references = [chosen.synthesizer.local_model, chosen.embedder.model, chosen.reranker.model, chosen.verifier.model]
    for reference in filter(None, references):
        if not any((settings.home / "models").glob("*")):
            _need_disk(settings.home)
        steps.say(f"model {reference}")
        catalog.locate(reference, progress=steps.say)
    needed = indexing.mending(settings)
    if needed:
        embeds = "--embed" in needed
        steps.say("the index is another embedder's: embedding it anew" if embeds else "building the default index")
        _build_index(settings, config, sets, needed)
    manifest = indexing.current(settings)
    if manifest is None:
        fail("the index could not be read after it was built; run `answer index --verify` to see why")
    steps.say(f"index {manifest.version}: {manifest.passages} passages of {manifest.corpus}")
    if manifest.embedded < manifest.passages:
        steps.say("what is not embedded is found by its words meanwhile; embedding it now, beside the server")
        command, environment = _command(config, sets, ["--embed"]), _environment(settings)
        # It ends with this process. No thread runs yet, so the hook is safe.
        subprocess.Popen(command, env=environment, preexec_fn=_run_beside)  # noqa: S603, PLW1509


def _need_disk(home: Path) -> None:
    free = shutil.disk_usage(home).free
    if free < NEEDED_BYTES:
        fail(
            f"{home} has {free / 2**30:.1f} GiB free and models and index need {NEEDED_BYTES / 2**30:.0f}; "
            "free some, or set ANSWER_HOME to a folder on another disk"
        )


def _build_index(settings: Settings, config: Path | None, sets: Sequence[str], arguments: list[str]) -> None:
    # A process of its own: the embedder's memory is given back before Serve starts.
    # No thread runs yet, so the hook between fork and exec is safe.
    done = subprocess.run(  # noqa: S603
        _command(config, sets, arguments), env=_environment(settings), check=False, preexec_fn=_end_with_parent
    )
    if done.returncode:
        fail("the default index could not be built; the reason stands above")


def _command(config: Path | None, sets: Sequence[str], arguments: list[str]) -> list[str]:
    command = [sys.executable, "-m", "serving.cli.main", "index", *arguments]
    if config is not None:
        command += ["--config", str(config)]
    return [*command, *(f"--set={assignment}" for assignment in sets)]


def _environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, "ANSWER_HOME": str(settings.home)}


def _run_beside() -> None:
    """As :func:`_end_with_parent`, and only with what the server leaves of the machine."""
    _end_with_parent()
    os.nice(19)


def _end_with_parent() -> None:
    """Linux ends this process when its parent dies, however it dies: nobody would wait for what it builds."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def check_port(host: str, port: int) -> None:
    """Ends the command when the port cannot be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                fail(f"port {port} is taken; stop what listens on it, or choose another with --port {port + 1}")
            fail(f"cannot listen on {host}:{port}: {error.strerror}; choose another with --host or --port")


class Server:
    """Ray and the Serve application, from start to shutdown, in this process's charge."""

    def __init__(self, settings: Settings, http: dict[str, Any], *, verbose: bool) -> None:
        self._settings = settings
        self._http = http
        self._verbose = verbose
        self.started = False
        self.url = f"http://{http['host']}:{http['port']}"

    def start(self, steps: Steps) -> None:
        """Starts everything and returns when every model has answered a warm-up."""
        steps.say("starting Ray")
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        from serving.deployments.front import CALLBACK, CALLBACK_VARIABLE

        os.environ.setdefault(CALLBACK_VARIABLE, CALLBACK)
        import ray
        from ray import serve

        from serving.app import application
        from serving.deployments.logs import serve_logging

        if not self._verbose:
            logging.getLogger("ray.serve").setLevel(logging.WARNING)  # importing Serve sets it to INFO
        self.started = True
        ray.init(
            address="local",  # a cluster of our own: another one on this machine is neither joined nor stopped
            num_cpus=max(2, os.cpu_count() or 2),
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=self._verbose,
            logging_level="INFO" if self._verbose else "ERROR",
        )
        serve.start(
            proxy_location="HeadOnly", http_options=self._http, logging_config=serve_logging(self._settings.logging)
        )
        steps.say("starting Serve: Gateway, Router, Retriever, Embedder, Reranker, Verifier, Synthesizer (vLLM)")
        serve.run_many(
            [serve.RunTarget(application(self._settings), name="answer", route_prefix="/")],
            wait_for_applications_running=False,  # waiting is ours, with progress and a reason when it fails
        )
        self._wait(steps)

    def _wait(self, steps: Steps) -> None:
        from ray import serve
        from ray.serve.schema import ApplicationStatus

        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            status = serve.status().applications.get("answer")
            if status is not None and status.status in (ApplicationStatus.DEPLOY_FAILED, ApplicationStatus.UNHEALTHY):
                raise AnswerError(f"Serve could not start: {_cause(status)}")
            if status is not None and status.status is ApplicationStatus.RUNNING and client.ready(self.url):
                return
            waiting = [
                name for name, one in (status.deployments if status else {}).items() if one.status.value != "HEALTHY"
            ]
            steps.every(f"waiting for {', '.join(waiting) or 'the warm-up'}")
            time.sleep(0.5)
        raise AnswerError(f"not ready after {READY_TIMEOUT_S:.0f} s; run again with --verbose to see what is slow")

    def stop(self) -> None:
        """Stops Serve (each deployment shuts its engine down) and Ray. Does nothing when they were not started."""
        if not self.started:
            return
        import ray
        from ray import serve

        # The driver prints what the cluster reports, and Serve's controller reports its own end as a failed task. Our
        # own words go to stderr, and a failure to stop is raised: nothing but that is kept back.
        hushed = contextlib.nullcontext() if self._verbose else contextlib.redirect_stdout(io.StringIO())
        with hushed:
            try:
                if ray.is_initialized():
                    serve.shutdown()
            finally:
                ray.shutdown()
                self.started = False


def _cause(status: Any) -> str:
    """The most telling line of what Serve says of its failed deployments."""
    texts = [status.message, *(one.message for one in status.deployments.values())]
    lines = [line.strip() for text in texts for line in text.splitlines() if "Error" in line and line.strip()]
    return lines[-1] if lines else " ".join(" ".join(texts).split())[:400]


def run(
    settings: Settings,
    http: dict[str, Any],
    *,
    config: Path | None,
    sets: Sequence[str],
    question: str | None,
    verbose: bool,
) -> Answer | None:
    """Starts, then either asks one question and returns its answer, or serves until stopped. Stops what it started."""
    steps = Steps()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _stop)
    server = Server(settings, http, verbose=verbose)
    try:
        check_port(http["host"], http["port"])
        prepare(settings, config, steps, sets=sets)
        server.start(steps)
        if question is not None:
            steps.say("asking")
            return client.ask(server.url, question, settings.timeout_s)
        steps.say(f"ready at {server.url}")
        body = '{"question": "What does itertools.chain do?"}'
        sys.stderr.write(
            f"\n  curl -s {server.url}/v1/answer -H 'content-type: application/json' -d '{body}'\n"
            f'  {Path(sys.argv[0]).parent / "answer"} ask --url {server.url} "What does itertools.chain do?"\n\n'
            "Ctrl-C stops it.\n"
        )
        while True:
            signal.pause()
    except Stopped:
        steps.say("stopping")
        return None
    finally:
        _ignore_signals()
        if server.started:
            server.stop()
            steps.say("stopped")
