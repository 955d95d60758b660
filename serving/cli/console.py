"""What a command says while it works: steps with elapsed time and progress, all on stderr; errors in one line."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

EVERY_S = 5.0

# Control characters but tab and newline, and what overrides the direction of writing.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text that comes from outside, as long as it was, with U+FFFD for each character that steers a terminal."""
    return _STEERING.sub("\ufffd", text)


def one_line(text: str) -> str:
    """The same on one line."""
    return printable(" ".join(text.split()))


class Steps:
    """Prints ``[ 12s] what is being done``. Seconds count from when ``scripts/run`` began, where it says so."""

    def __init__(self) -> None:
        self._began = time.time()
        began = os.environ.get("ANSWER_BEGAN", "")
        if began.isdecimal() and 0 <= self._began - int(began) < 86_400:
            self._began = float(began)
        self._last = 0.0

    def say(self, message: str) -> None:
        sys.stderr.write(f"[{time.time() - self._began:4.0f}s] {printable(message)}\n")
        sys.stderr.flush()
        self._last = time.time()

    def every(self, message: str) -> None:
        """Says it unless something was said in the last few seconds."""
        if time.time() - self._last >= EVERY_S:
            self.say(message)


def fail(message: str, code: int = 1) -> NoReturn:
    """Ends the command with a one-line reason that names the fix."""
    sys.stderr.write(f"answer: {one_line(message)}\n")
    raise SystemExit(code)


@contextmanager
def stdout_for_result() -> Iterator[int]:
    """Sends all that is printed, by libraries and child processes too, to stderr; yields the real stdout's fd."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        yield real
    finally:
        sys.stdout.flush()
        os.dup2(real, 1)
        os.close(real)


def write_all(fd: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(fd, data) :]
