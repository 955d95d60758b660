"""Virtual environments of the peers, made once and kept."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from serving.cli.console import Steps

_LOCK = Path(__file__).parents[2] / "configs" / "locks" / "cpu.lock"


@dataclass(frozen=True, slots=True)
class Peers:
    """An environment: its name, what pip is told to install, one step after another, and what that depends on."""

    name: str
    steps: tuple[tuple[str, ...], ...]
    of: bytes = b""


LOCKED = Peers("locked", (("--no-deps", "--require-hashes", "-r", str(_LOCK)),), _LOCK.read_bytes())
"""sentence-transformers and vLLM, in the versions that we run."""
INFINITY = Peers("infinity", (("torch==2.13.0+cpu",), ("infinity-emb[torch,server]==0.0.78",)))


def environment(folder: Path, peers: Peers, steps: Steps) -> Path:
    """The Python of an environment below ``folder``, which is made when it is not there, or is another lock's.

    Raises RuntimeError with the end of what pip said when it cannot be made.
    """
    digest = hashlib.sha256(repr(peers.steps).encode() + peers.of).hexdigest()[:12]
    target = folder / f"{peers.name}-{digest}"
    python, done = target / "bin" / "python", target / ".done"
    if done.exists():
        return python
    shutil.rmtree(target, ignore_errors=True)
    steps.say(f"making the environment of the peers ({peers.name}) in {target}")
    _run([sys.executable, "-m", "venv", str(target)])
    for arguments in peers.steps:
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])
    done.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " | ".join(done.stderr.splitlines()[-5:])
        raise RuntimeError(f"{' '.join(command[:4])} failed: {said}; is PyTorch's CPU index among pip's sources?")
