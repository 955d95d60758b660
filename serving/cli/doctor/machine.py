"""The machine as the checks see it: a seam, so that every check can be asked about machines that nobody has here."""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx

from serving.cli import client


@dataclass(frozen=True, slots=True)
class Disk:
    """In bytes."""

    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Reply:
    """``body`` is the parsed JSON, None when it is none."""

    status: int
    body: Any


class Machine(Protocol):
    """Everything that a check may ask. Nothing of it changes the machine."""

    @property
    def environ(self) -> Mapping[str, str]: ...

    @property
    def python(self) -> tuple[int, int, int]: ...

    @property
    def prefix(self) -> Path:
        """The Python environment."""
        ...

    @property
    def system(self) -> str:
        """Such as ``Linux x86_64``."""
        ...

    def read(self, path: str) -> str | None:
        """A file's text, None when it cannot be read."""
        ...

    def disk(self, path: Path) -> Disk:
        """The disk that ``path``, or its nearest parent that exists, lies on."""
        ...

    def writable(self, path: Path) -> bool:
        """Whether something can be made at ``path``, or in its nearest parent that exists."""
        ...

    def cores(self) -> int: ...

    def open_files(self) -> int:
        """How many files a process may have open."""
        ...

    def version_of(self, package: str) -> str | None:
        """The installed version of a distribution."""
        ...

    def has_module(self, name: str) -> bool:
        """Whether a top-level module can be found. It is not imported."""
        ...

    def has_file(self, module: str, pattern: str) -> bool:
        """Whether the folder of a top-level module holds a file like ``pattern``."""
        ...

    def refusal(self, host: str, port: int) -> str:
        """Why ``port`` cannot be listened on: ``taken``, or what the system says; empty when it can."""
        ...

    def call(self, url: str, path: str, body: dict[str, Any] | None = None, *, timeout_s: float) -> Reply:
        """GET, or POST with a body. Raises :class:`~serving.cli.client.ServerError`."""
        ...

    def run(self, *command: str) -> str | None:
        """What a program prints, None when there is no such program or it fails."""
        ...


class ThisMachine:
    """The machine that this process runs on."""

    environ: Mapping[str, str] = os.environ
    python = (sys.version_info.major, sys.version_info.minor, sys.version_info.micro)
    prefix = Path(sys.prefix)
    system = f"{platform.system()} {platform.machine()}"

    def read(self, path: str) -> str | None:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def disk(self, path: Path) -> Disk:
        usage = shutil.disk_usage(_existing(path))
        return Disk(usage.total, usage.free)

    def writable(self, path: Path) -> bool:
        there = _existing(path)
        return there.is_dir() and os.access(there, os.W_OK | os.X_OK)

    def cores(self) -> int:
        return len(os.sched_getaffinity(0))

    def open_files(self) -> int:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def version_of(self, package: str) -> str | None:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def has_module(self, name: str) -> bool:
        return importlib.util.find_spec(name) is not None

    def has_file(self, module: str, pattern: str) -> bool:
        spec = importlib.util.find_spec(module)
        folders = (spec.submodule_search_locations or ()) if spec else ()
        return any(next(Path(folder).glob(pattern), None) for folder in folders)

    def refusal(self, host: str, port: int) -> str:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        except OSError as error:
            return "taken" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
        return ""

    def call(self, url: str, path: str, body: dict[str, Any] | None = None, *, timeout_s: float) -> Reply:
        response = client.probe(url, path, body, timeout_s=timeout_s)
        return Reply(response.status_code, _json(response))

    def run(self, *command: str) -> str | None:
        try:
            # The programs and their arguments are ours; where they lie is the person's choice.
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None


def _existing(path: Path) -> Path:
    """``path``, or the nearest of its parents that exists."""
    return next((one for one in (path, *path.parents) if one.exists()), Path("/"))


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None
