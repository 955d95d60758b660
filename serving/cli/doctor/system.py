"""Python, CPU, memory, disks and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from models.cpu import resolve_dtype
from serving.cli.doctor.findings import Finding, Subject, gib, ok, problem, warning
from serving.cli.doctor.gpu import gpus_of
from serving.cli.doctor.machine import Machine
from serving.cli.up import NEEDED_BYTES, OBJECT_STORE_BYTES

COMFORTABLE_MEMORY = 8 * 2**30
"""What all processes of the embedded target take at most, what they share counted once."""
LEAST_MEMORY = 4 * 2**30
RAY_FULL = 0.95
"""Ray stops making objects when the disk of its folder is fuller."""
OPEN_FILES = 8_192

_CGROUPS = PurePosixPath("/sys/fs/cgroup")
_UNLIMITED = 2**60
_SHARED = Path("/dev/shm")  # noqa: S108 (asked how large it is)


def python(machine: Machine, subject: Subject) -> Iterator[Finding]:
    version = ".".join(map(str, machine.python))
    if machine.python[:2] == (3, 11):
        yield ok("python.version", f"Python {version} in {machine.prefix}")
    else:
        fix = "apt-get install python3.11-venv, then scripts/run"
        yield problem("python.version", f"this is Python {version}, and Python 3.11 is needed", fix)
    if machine.system == "Linux x86_64":
        yield ok("platform", machine.system)
    else:
        message = f"the locks are for Linux on x86-64, and this is {machine.system}"
        yield problem("platform", message, "docker run --rm -it --platform linux/amd64 python:3.11 bash")


def cpu(machine: Machine, subject: Subject) -> Iterator[Finding]:
    cores = machine.cores()
    if cores < 2:
        yield warning("cpu.cores", "1 core: models wait for each other", "run it where there are 2 cores or more")
    else:
        yield ok("cpu.cores", f"{cores} cores")
    flags = _flags(machine)
    known = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    has = [flag for flag in known if flag in flags.split()]
    if gpus_of(subject.settings.deployments.synthesizer):
        yield ok("cpu.features", f"{', '.join(has) or 'none of ' + ', '.join(known)}; the synthesizer runs on a GPU")
        return
    if "avx2" in has:
        yield ok("cpu.features", ", ".join(has))
    else:
        message = "this CPU has no AVX2, which vLLM's and PyTorch's CPU builds need"
        yield problem(
            "cpu.features", message, "run it on another machine (grep -c avx2 /proc/cpuinfo says more than 0)"
        )
    yield from _dtype(flags, subject)


def _dtype(flags: str, subject: Subject) -> Iterator[Finding]:
    best = resolve_dtype("auto", flags=flags)
    for name in ("synthesizer", "embedder"):
        asked = getattr(subject.settings.models, name).dtype
        chosen = resolve_dtype(asked, flags=flags)
        if chosen in (best, "float32"):
            yield ok(f"cpu.dtype.{name}", f"{name} computes in {chosen}")
        else:
            message = f"{name} is set to {chosen}, which this CPU computes several times slower than {best}"
            fix = f"answer up{subject.with_config} --set models.{name}.dtype=auto"
            yield warning(f"cpu.dtype.{name}", message, fix)


def _flags(machine: Machine) -> str:
    found = re.search(r"^(?:flags|Features)[^:]*:(.*)$", machine.read("/proc/cpuinfo") or "", re.MULTILINE)
    return found[1] if found else ""


def memory(machine: Machine, subject: Subject) -> Iterator[Finding]:
    """A control group's limit counts like the machine's own memory, and its use like the machine's."""
    fields: dict[str, str] = dict(re.findall(r"^(\w+):\s+(\d+) kB", machine.read("/proc/meminfo") or "", re.MULTILINE))
    if "MemTotal" not in fields:
        yield warning("memory", "this machine does not say how much memory it has", "cat /proc/meminfo")
        return
    total, where = int(fields["MemTotal"]) * 1024, "this machine"
    free = int(fields.get("MemAvailable", fields["MemTotal"])) * 1024
    for limit, used in _limits(machine):
        if limit < total:
            total, where = limit, "this container"
        free = min(free, max(0, limit - used))
    message = f"{where} has {gib(total)} of memory, {gib(free)} of it free"
    if total < LEAST_MEMORY:
        fix = "docker run --memory=8g …" if where == "this container" else "run it where there are 8 GiB"
        yield problem("memory", f"{message}, and models, Ray and vLLM need {gib(LEAST_MEMORY)} at the very least", fix)
    elif free < COMFORTABLE_MEMORY:
        message += f"; the embedded target takes up to {gib(COMFORTABLE_MEMORY)}"
        yield warning("memory", message, "ps aux --sort=-rss | head, and stop what is not needed")
    else:
        yield ok("memory", message)


def _limits(machine: Machine) -> Iterator[tuple[int, int]]:
    """Limit and use, in bytes, of each control group that this process is in; files in the cache count as free."""
    for line in (machine.read("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            root, names = _CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = _CGROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # A container often sees its own group as the root, whatever path is said here.
        group = root / path.lstrip("/")
        for folder in (group, *(one for one in group.parents if one.is_relative_to(root))):
            limit = (machine.read(str(folder / names[0])) or "").strip()
            if limit.isdecimal() and int(limit) < _UNLIMITED:
                used = (machine.read(str(folder / names[1])) or "0").strip()
                cached = re.search(rf"^{names[2]} (\d+)", machine.read(str(folder / "memory.stat")) or "", re.MULTILINE)
                yield int(limit), int(used) - (int(cached[1]) if cached else 0)


def disks(machine: Machine, subject: Subject) -> Iterator[Finding]:
    home = subject.settings.home
    disk = machine.disk(home)
    prepared = machine.writable(home) and subject.settings.index_path.exists()
    if not machine.writable(home):
        message = f"{home} cannot be written to"
        yield problem("disk.home", message, "export ANSWER_HOME=FOLDER, one that you can write to")
    elif disk.free < (NEEDED_BYTES // 4 if prepared else NEEDED_BYTES):
        message = f"{home} has {gib(disk.free)} free and models and index need {gib(NEEDED_BYTES)}"
        yield problem("disk.home", message, "free some, or export ANSWER_HOME=FOLDER, one on another disk")
    else:
        yield ok("disk.home", f"{gib(disk.free)} free at {home}")
    scratch = Path(machine.environ.get("RAY_TMPDIR") or machine.environ.get("TMPDIR") or "/tmp")  # noqa: S108
    disk = machine.disk(scratch)
    if not machine.writable(scratch):
        message = f"{scratch} cannot be written to, and Ray keeps its session there"
        yield problem("disk.tmp", message, "export RAY_TMPDIR=FOLDER, one that you can write to")
    elif disk.total and disk.free / disk.total < 1 - RAY_FULL:
        message = f"{scratch} is more than {RAY_FULL:.0%} full ({gib(disk.free)} free), and Ray then makes no objects"
        yield warning("disk.tmp", message, "free some, or export RAY_TMPDIR=FOLDER, one on another disk")
    else:
        yield ok("disk.tmp", f"{gib(disk.free)} free at {scratch}")
    shared = machine.disk(_SHARED)
    if shared.free < OBJECT_STORE_BYTES:
        message = (
            f"{_SHARED} has {gib(shared.free)} free and Ray's object store takes {gib(OBJECT_STORE_BYTES)}: "
            f"it falls back to {scratch}, slowly"
        )
        yield warning("disk.shm", message, "docker run --shm-size=1g …")
    else:
        yield ok("disk.shm", f"{gib(shared.free)} free at {_SHARED}")


def limits(machine: Machine, subject: Subject) -> Iterator[Finding]:
    files = machine.open_files()
    if files < OPEN_FILES:
        yield warning("limits.files", f"a process may open {files} files, and Ray may want more", "ulimit -n 65536")
    else:
        yield ok("limits.files", f"a process may open {files} files")
