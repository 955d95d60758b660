"""A machine made up for a test: all is well with it but for what the test says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving.cli.client import ServerError
from serving.cli.doctor.findings import Finding, Status, Subject
from serving.cli.doctor.machine import Disk, Reply

GIB = 2**30
CPUINFO = "processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512_bf16\n"
MEMINFO = "MemTotal:       33554432 kB\nMemFree:  1 kB\nMemAvailable:   25165824 kB\n"


@dataclass
class FakeMachine:
    environ: Mapping[str, str] = field(default_factory=dict)
    python: tuple[int, int, int] = (3, 11, 9)
    prefix: Path = Path("/repo/.venv")
    system: str = "Linux x86_64"
    files: dict[str, str] = field(default_factory=lambda: {"/proc/cpuinfo": CPUINFO, "/proc/meminfo": MEMINFO})
    disks: dict[str, Disk] = field(default_factory=dict)
    unwritable: tuple[str, ...] = ()
    core_count: int = 8
    file_limit: int = 65_536
    versions: dict[str, str] = field(default_factory=lambda: {"torch": "2.13.0+cpu"})
    absent: tuple[str, ...] = ()
    built_with: tuple[str, ...] = ()
    refused: dict[int, str] = field(default_factory=dict)
    replies: dict[str, Reply | ServerError] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    called: list[str] = field(default_factory=list)

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def disk(self, path: Path) -> Disk:
        return self.disks.get(str(path), Disk(100 * GIB, 50 * GIB))

    def writable(self, path: Path) -> bool:
        return str(path) not in self.unwritable

    def cores(self) -> int:
        return self.core_count

    def open_files(self) -> int:
        return self.file_limit

    def version_of(self, package: str) -> str | None:
        return self.versions.get(package)

    def has_module(self, name: str) -> bool:
        return name not in self.absent

    def has_file(self, module: str, pattern: str) -> bool:
        return f"{module}/{pattern}" in self.built_with

    def refusal(self, host: str, port: int) -> str:
        return self.refused.get(port, "")

    def call(self, url: str, path: str, body: dict[str, Any] | None = None, *, timeout_s: float) -> Reply:
        self.called.append(f"{'GET' if body is None else 'POST'} {url}{path}")
        reply = self.replies.get(path, ServerError(f"no server at {url}"))
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def run(self, *command: str) -> str | None:
        return self.programs.get(command[0])


def found(
    check: Callable[[FakeMachine, Subject], Iterable[Finding]], machine: FakeMachine, subject: Subject
) -> dict[str, Finding]:
    """What a check finds, by name. Whatever is wrong names what mends it, and nothing else does."""
    findings = list(check(machine, subject))
    assert len({one.check for one in findings}) == len(findings)
    for one in findings:
        assert bool(one.fix) == (one.status is not Status.OK), one
        assert one.message
    return {one.check: one for one in findings}
