import os
import subprocess
import sys
import time

from models.leash import Leash


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


def test_they_end_when_the_process_is_killed() -> None:
    held = sleeper()
    code = f"import os, models.leash as m; leash = m.Leash([{held.pid}]); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    assert held.wait(20) == -9


def test_they_live_on_when_released() -> None:
    held = sleeper()
    Leash([held.pid]).release()
    time.sleep(0.3)
    assert held.poll() is None
    os.kill(held.pid, 9)
    held.wait()
