"""The servers that are measured, each a process of its own: ours as ``answer up`` starts it, and its peers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from encoders.environments import INFINITY, LOCKED, environment

from serving.cli.console import Steps

READY_S = 300.0
PLAIN = Path(__file__).with_name("plain_server.py")


@dataclass(frozen=True, slots=True)
class Server:
    """One that is up. ``name`` is what figures call it, ``process`` the first of its processes."""

    name: str
    base: str
    rerank: str
    process: int

    @property
    def url(self) -> str:
        return self.base + self.rerank


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started: its command, what its environment holds beside ours, and where it says it is ready."""

    name: str
    command: tuple[str, ...]
    port: int
    ready: str
    rerank: str
    variables: Mapping[str, str] = field(default_factory=dict)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ours(home: Path, index: Path, model: Path, dtype: str, backend: str) -> Launch:
    """The embedded target, with the cross-encoder in ``model`` as its reranker."""
    port = free_port()
    chosen = {
        "index": index,
        "models.reranker.kind": "cross_encoder",
        "models.reranker.model": f"path:{model}",
        "models.reranker.threads": os.cpu_count() or 1,
        "models.reranker.dtype": dtype,
        "models.reranker.backend": backend,
    }
    given = [f"--set={key}={value}" for key, value in chosen.items()]
    command = (sys.executable, "-m", "serving.cli.main", "up", f"--port={port}", *given)
    return Launch("ours", command, port, "/readyz", "/v1/rerank", {"ANSWER_HOME": str(home)})


def plain(peers: Path, model: Path, dtype: str, steps: Steps) -> Launch:
    python, port = environment(peers, LOCKED, steps), free_port()
    command = (str(python), str(PLAIN), f"--model={model}", f"--dtype={dtype}", f"--port={port}")
    return Launch("CrossEncoder behind FastAPI", command, port, "/health", "/rerank", _THREADS)


def vllm(peers: Path, model: Path, dtype: str, steps: Steps) -> Launch:
    python, port = environment(peers, LOCKED, steps), free_port()
    command = (
        # Not its own command, which looks for the package under the name of the GPU build.
        str(python), "-m", "vllm.entrypoints.openai.api_server", f"--model={model}", "--runner=pooling",
        f"--dtype={dtype}", f"--port={port}", "--gpu-memory-utilization=0.2",
    )  # fmt: skip
    # Left alone it computes on one core of two.
    variables = {**_THREADS, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return Launch("vLLM", command, port, "/health", "/rerank", variables)


def infinity(peers: Path, model: Path, dtype: str, steps: Steps) -> Launch:
    python, port = environment(peers, INFINITY, steps), free_port()
    command = (
        str(python.with_name("infinity_emb")), "v2", f"--model-id={model}", f"--dtype={dtype}", f"--port={port}",
        "--engine=torch", "--device=cpu", "--no-bettertransformer", "--batch-size=32",
    )  # fmt: skip
    return Launch("infinity", command, port, "/health", "/rerank", {**_THREADS, "DO_NOT_TRACK": "1"})


_THREADS = {"OMP_NUM_THREADS": str(os.cpu_count() or 1), "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


@contextlib.contextmanager
def running(launch: Launch, logs: Path, steps: Steps) -> Iterator[Server]:
    """The server, once it is ready. All its processes are gone at the end.

    Raises RuntimeError, with the end of what it said, when it ends or is not ready in time.
    """
    log = logs / f"{launch.name.split()[0]}.log"
    steps.say(f"starting {launch.name}")
    with log.open("wb") as said:
        process = subprocess.Popen(
            launch.command,
            env={**os.environ, **launch.variables},
            stdout=said,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    base = f"http://127.0.0.1:{launch.port}"
    try:
        _wait(process, base + launch.ready, launch.name, log, steps)
        yield Server(launch.name, base, launch.rerank, process.pid)
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], url: str, name: str, log: Path, steps: Steps) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended with {process.returncode}: {_tail(log)}")
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, timeout=5.0).status_code == 200:
                return
        steps.every(f"waiting for {name}")
        time.sleep(0.5)
    raise RuntimeError(f"{name} was not ready after {READY_S:.0f} s: {_tail(log)}")


def _tail(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").splitlines()[-8:])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks it to stop, then whatever is left of its session."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=60)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
