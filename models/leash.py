"""Ties processes to this one: they end with it, even when it is killed and can no longer end them itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

# Waits for the end of its input, which comes when the writing process is gone, whatever ended it. A process descriptor
# names a process for good; its number may be another's by then.
_WATCH = """
import os, signal, sys
held = [os.pidfd_open(int(number)) for number in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
for process in held:
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class Leash:
    """Kills the processes numbered ``pids`` when this process ends, unless :meth:`release` is called before.

    Must be made after them: a process forked later may hold the leash open.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._watcher = subprocess.Popen(  # noqa: S603 (our own interpreter and program)
            [sys.executable, "-I", "-S", "-c", _WATCH, *map(str, pids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # an interrupt at the terminal is for us, not for the watcher
        )
        if self._watcher.stdout is not None:
            self._watcher.stdout.readline()

    def release(self) -> None:
        self._watcher.kill()
        self._watcher.communicate()
