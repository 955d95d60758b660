"""Variables in the shell that change what happens without anybody remembering them."""

from __future__ import annotations

from collections.abc import Iterator

from serving.cli.doctor.findings import Finding, Subject, ok, warning
from serving.cli.doctor.machine import Machine

LOCAL = ("localhost", "127.0.0.1")
HARMLESS = {"VLLM_NO_USAGE_STATS", "VLLM_LOGGING_LEVEL", "VLLM_DO_NOT_TRACK"}


def variables(machine: Machine, subject: Subject) -> Iterator[Finding]:
    findings = [*_threads(machine), *_vllm(machine), *_ray(machine), *_proxy(machine), *_python(machine)]
    yield from findings or [ok("environment", "nothing in the shell changes how it runs")]


def _threads(machine: Machine) -> Iterator[Finding]:
    text = machine.environ.get("OMP_NUM_THREADS", "")
    if text and not text.isdecimal():
        message = f"OMP_NUM_THREADS is {text!r}, which is no number of threads"
        yield warning("environment.threads", message, "unset OMP_NUM_THREADS")
    elif text and int(text) > machine.cores():
        message = f"OMP_NUM_THREADS is {text}, more than the {machine.cores()} cores: threads wait for each other"
        yield warning("environment.threads", message, "unset OMP_NUM_THREADS; models.….threads are the settings")


def _vllm(machine: Machine) -> Iterator[Finding]:
    found = sorted(name for name in machine.environ if name.startswith("VLLM_") and name not in HARMLESS)
    if found:
        message = f"{', '.join(found)} in the shell: vLLM reads it, whatever the settings say"
        yield warning("environment.vllm", message, f"unset {' '.join(found)}")


def _ray(machine: Machine) -> Iterator[Finding]:
    address = machine.environ.get("RAY_ADDRESS")
    if address:
        message = "RAY_ADDRESS is set: `serve run` joins that cluster, `answer up` starts its own all the same"
        yield warning("environment.ray", message, "unset RAY_ADDRESS")


def _proxy(machine: Machine) -> Iterator[Finding]:
    """The client here never asks a proxy for this machine; curl and other clients do."""
    environ = machine.environ
    proxies = [name for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY") if environ.get(name)]
    spared = {host.strip() for name in ("no_proxy", "NO_PROXY") for host in environ.get(name, "").split(",")}
    if proxies and "*" not in spared and not set(LOCAL) <= spared:
        message = f"{proxies[0]} is set: curl and other clients ask that proxy for this machine, too"
        yield warning("environment.proxy", message, f"export no_proxy={','.join(LOCAL)} NO_PROXY={','.join(LOCAL)}")


def _python(machine: Machine) -> Iterator[Finding]:
    if machine.environ.get("PYTHONHOME"):
        message = "PYTHONHOME is set: Ray's workers may find another Python"
        yield warning("environment.python", message, "unset PYTHONHOME")
