"""The sampled log of answers: JSON Lines, bounded by size, written off the answer's path.

An answer is put into a short queue and a thread writes it; when the queue is full, or the disk, the line is lost and
counted, and the answer goes out all the same. Each process writes a file of its own: nothing is shared or locked.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from serving.answer.logged import logged
from serving.answer.wire import Answer
from serving.settings import AnswerLogSettings

log = logging.getLogger(__name__)

WAITING = 256


class AnswerLog:
    """Writes about ``share`` of the answers it is offered into ``folder``.

    A file that has reached ``max_bytes`` is set aside and a new one begun; beside it ``keep_files`` older ones are
    kept, so that a process holds at most ``(keep_files + 1) * max_bytes`` and one line. Only its user can read them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        share: float,
        keep_words: bool,
        max_bytes: int,
        keep_files: int,
        chance: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = folder / f"answers-{os.uname().nodename}-{os.getpid()}.jsonl"
        self._share = share
        self._keep_words = keep_words
        self._max_bytes = max_bytes
        self._keep_files = keep_files
        self._chance = chance
        self._now = now
        self._waiting: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self.lost = 0

    @classmethod
    def of(cls, chosen: AnswerLogSettings, default: Path) -> AnswerLog:
        return cls(
            chosen.path or default,
            share=chosen.share,
            keep_words=chosen.questions == "keep",
            max_bytes=chosen.max_bytes,
            keep_files=chosen.keep_files,
        )

    def offer(self, question: str, answer: Answer) -> None:
        """Never waits and never fails: an answer is not held up by its log."""
        if self._share <= 0 or self._chance() >= self._share:
            return
        try:
            line = logged(question, answer, at=self._now(), keep=self._keep_words).model_dump_json()
            self._waiting.put_nowait(line.encode(errors="replace") + b"\n")
        except (queue.Full, ValueError):
            self.lost += 1
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="answer-log", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Writes what waits, and ends."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            try:
                self._append(line)
            except OSError as error:
                self.lost += 1
                if self.lost == 1:
                    log.warning("the answer log cannot be written to %s: %s", self._path.parent, error.strerror)

    def _append(self, line: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists() and self._path.stat().st_size >= self._max_bytes:
            self._rotate()
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def _rotate(self) -> None:
        """``answers….jsonl`` becomes ``….1.jsonl``, that ``….2.jsonl``, and the last one goes."""
        aged = [self._path, *(self._path.with_suffix(f".{age}.jsonl") for age in range(1, self._keep_files + 1))]
        aged[-1].unlink(missing_ok=True)
        for younger, older in reversed(list(pairwise(aged))):
            if younger.exists():
                younger.replace(older)
