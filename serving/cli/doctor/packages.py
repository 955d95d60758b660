"""The installed packages against the lock that they should come from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from serving.cli.doctor.findings import Finding, Subject, ok, problem, warning
from serving.cli.doctor.gpu import gpus_asked
from serving.cli.doctor.machine import Machine

HEAVY = ("faiss", "ray", "sentence_transformers", "tantivy", "torch", "transformers", "vllm", "xgrammar")
"""The modules that it cannot run without."""
BREAKERS = ("torchvision", "torchaudio", "torchcodec")
"""What vLLM asks for and nothing here needs: beside the CPU build of torch, importing transformers fails on them."""
SHOWN = 6

_LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)


def lock(machine: Machine, subject: Subject) -> Iterator[Finding]:
    name = "gpu" if gpus_asked(subject.settings) else "cpu"
    path = subject.root / "configs" / "locks" / f"{name}.lock" if subject.root else None
    text = machine.read(str(path)) if path else None
    if text is None:
        yield ok("packages.lock", f"no configs/locks/{name}.lock beside the code: versions are not compared")
        return
    locked = {found["name"]: found["version"] for found in _LOCKED.finditer(text)}
    installed = {package: machine.version_of(package) for package in locked}
    missing = sorted(package for package, version in installed.items() if version is None)
    others = sorted(
        f"{package} {version} (locked {locked[package]})"
        for package, version in installed.items()
        if version is not None and version != locked[package]
    )
    if not missing and not others:
        yield ok("packages.lock", f"all {len(locked)} packages are as configs/locks/{name}.lock says")
        return
    fix = f"{_pip(machine)} install --no-deps --require-hashes -r {path}"
    if name == "cpu":
        fix = install_again(machine, subject)
    if missing:
        yield problem("packages.missing", f"{len(missing)} of {len(locked)} are not installed: {_some(missing)}", fix)
    if others:
        yield warning("packages.versions", f"{len(others)} of {len(locked)} have another version: {_some(others)}", fix)


def importable(machine: Machine, subject: Subject) -> Iterator[Finding]:
    absent = [name for name in HEAVY if not machine.has_module(name)]
    if absent:
        yield problem(
            "packages.importable", f"cannot be imported: {', '.join(absent)}", install_again(machine, subject)
        )
    else:
        yield ok("packages.importable", f"found: {', '.join(HEAVY)}")


def breakers(machine: Machine, subject: Subject) -> Iterator[Finding]:
    torch = machine.version_of("torch")
    there = [name for name in BREAKERS if machine.version_of(name)]
    if torch is not None and torch.endswith("+cpu") and there:
        message = f"{', '.join(there)} beside torch {torch}: transformers and vLLM may fail to import"
        yield problem("packages.torch", message, f"{_pip(machine)} uninstall -y {' '.join(there)}")
    elif torch is None:
        yield problem("packages.torch", "torch is not installed", install_again(machine, subject))
    else:
        yield ok("packages.torch", f"torch {torch}" + ("" if there else f", without {', '.join(BREAKERS)}"))


def install_again(machine: Machine, subject: Subject) -> str:
    """The command that puts every locked package back; without a checkout, what there is to do."""
    if subject.root is None:
        return "clone the repository and run scripts/run there"
    prefix, default = machine.prefix, subject.root / ".venv"
    where = "" if prefix == default else f"ANSWER_VENV={shlex.quote(str(prefix))} "
    stamps = f"{shlex.quote(str(prefix))}/.answer-*"
    return f"rm -f {stamps}; {where}{shlex.quote(str(subject.root))}/scripts/setup.sh --torch-index"


def _pip(machine: Machine) -> str:
    return f"{shlex.quote(str(machine.prefix / 'bin' / 'python'))} -m pip"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
