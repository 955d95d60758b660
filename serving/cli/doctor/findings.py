"""What a check finds."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from serving.settings import Settings


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It runs, but not as well as it might, or not for everybody."""
    PROBLEM = "problem"
    """It will not run, or not as the settings ask."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``check`` is a stable name, such as ``disk.home``. ``fix`` is the command that mends it, or what to do where
    no command can; it is empty when all is well.
    """

    check: str
    status: Status
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What the machine is checked against.

    ``config`` is what a person would write after ``--config``; ``http`` are Serve's HTTP options; ``url`` is a running
    server to check; ``root`` is the checkout, where there is one.
    """

    settings: Settings
    config: str = ""
    http: dict[str, Any] = field(default_factory=dict)
    url: str | None = None
    root: Path | None = None

    @property
    def with_config(self) -> str:
        """The options that make a command read the same file."""
        return f" --config {shlex.quote(self.config)}" if self.config else ""


def ok(check: str, message: str) -> Finding:
    return Finding(check, Status.OK, message)


def warning(check: str, message: str, fix: str) -> Finding:
    return Finding(check, Status.WARNING, message, fix)


def problem(check: str, message: str, fix: str) -> Finding:
    return Finding(check, Status.PROBLEM, message, fix)


def gib(count: float) -> str:
    return f"{count / 2**30:.1f} GiB"
