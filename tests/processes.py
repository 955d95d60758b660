"""The processes that a test has started, to see that none is left."""

from __future__ import annotations

import psutil


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it ended while we looked
        return ""


def children() -> set[psutil.Process]:
    """The live processes under this one, but for the standard library's tracker, which lives as long as we do."""
    found = psutil.Process().children(recursive=True)
    return {child for child in found if command_line(child) and "resource_tracker" not in command_line(child)}


def assert_ended(processes: set[psutil.Process], seconds: float = 20.0) -> None:
    _, alive = psutil.wait_procs(list(processes), timeout=seconds)
    left = [line for process in alive if (line := command_line(process))]
    assert not left, left
