"""Every check, in the order in which a person would look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from serving.cli.doctor import contents, environment, gpu, network, packages, system
from serving.cli.doctor.findings import Finding, Subject, problem
from serving.cli.doctor.machine import Machine

Check = Callable[[Machine, Subject], Iterable[Finding]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("python", system.python),
    ("cpu", system.cpu),
    ("memory", system.memory),
    ("disk", system.disks),
    ("limits", system.limits),
    ("packages.lock", packages.lock),
    ("packages.importable", packages.importable),
    ("packages.torch", packages.breakers),
    ("gpu", gpu.gpu),
    ("models", contents.models),
    ("index", contents.index),
    ("port", network.ports),
    ("environment", environment.variables),
    ("server", network.server),
)
WITHOUT_SETTINGS = ("python", "limits", "packages.importable", "packages.torch", "environment", "server")
"""What is checked even when there are no settings to check against."""


def examine(machine: Machine, subject: Subject, checks: Iterable[tuple[str, Check]] = CHECKS) -> Iterator[Finding]:
    """All that the checks find. A check that fails itself is a finding, too."""
    for name, check in checks:
        try:
            yield from check(machine, subject)
        except Exception as error:  # whatever it is, the other checks are still worth having
            said = " ".join(f"{type(error).__name__} {error}".split())
            yield problem(name, f"this check failed itself: {said}", "answer doctor --json, and report what it says")
