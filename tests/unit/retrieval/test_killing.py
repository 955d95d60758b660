"""``kill -9`` at any moment loses nothing that was there."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from serving.retrieval.generations import EMBED_COMMAND
from serving.retrieval.index import HybridIndex
from serving.retrieval.verifying import verify

from .indexing_process import index

COUNT = 60
MOMENTS = 10


def start(root: Path, *numbers: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.unit.retrieval.indexing_process", str(root), *map(str, (COUNT, *numbers))]
    return subprocess.Popen(command, cwd=Path(__file__).parents[3])


def begun(root: Path, process: "subprocess.Popen[bytes]") -> bool:
    """Waits until it writes (or has ended), so that the random moment is not spent on importing."""
    while process.poll() is None and not list(root.glob("building-*")):
        time.sleep(0.001)
    return process.poll() is None


def check(root: Path) -> int:
    """The index is whole, and all of one round; which one."""
    assert [fault for fault in verify(root, lambda _said: None)[1] if fault.mend != EMBED_COMMAND] == []
    opened = HybridIndex.open(root)
    assert len(opened) == COUNT
    rounds = {passage.text.split()[0] for passage in opened.passages(ordinals(opened)).values()}
    [only] = rounds
    return int(only.removeprefix("Round"))


def ordinals(opened: HybridIndex) -> range:
    last = opened.manifest.next_ordinal
    return range(last - COUNT, last)


def test_ten_kills_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(20_240_229)
    began = time.perf_counter()
    index(tmp_path, COUNT, 0)
    took = time.perf_counter() - began
    assert check(tmp_path) == 0
    last = 0
    for number in range(1, MOMENTS + 1):
        process = start(tmp_path, number)
        alive = begun(tmp_path, process)
        time.sleep(chance.random() * took * 1.2)
        process.send_signal(signal.SIGKILL)
        killed = process.wait() == -signal.SIGKILL
        assert killed or not alive or process.returncode == 0
        now = check(tmp_path)
        assert now in {last, number}
        last = now
    index(tmp_path, COUNT, MOMENTS + 1)
    assert check(tmp_path) == MOMENTS + 1
    assert verify(tmp_path, lambda _said: None)[1] == []
    assert not list(tmp_path.glob("building-*"))


def test_kills_between_building_and_switching(tmp_path: Path) -> None:
    index(tmp_path, COUNT, 0)
    # The words of round 1 are built, then in their place; a quarter of its vectors is built, then in its place.
    for rename, (number, embedded) in enumerate([(0, 60), (0, 60), (1, 0), (1, 0), (1, 15)], start=1):
        process = start(tmp_path, 1, rename)
        assert process.wait() == -signal.SIGKILL
        assert check(tmp_path) == number
        assert HybridIndex.open(tmp_path).manifest.embedded == embedded
        if number:
            index(tmp_path, COUNT, 0)
    process = start(tmp_path, 1)
    assert process.wait() == 0
    assert check(tmp_path) == 1
    assert verify(tmp_path, lambda _said: None)[1] == []
