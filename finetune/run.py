"""A run: the folder that holds what went into a job and what came out, and that a killed job goes on from.

FOLDER/settings.json     the settings, as they were resolved
FOLDER/data.json         each input with its SHA-256, its rows and how many were left out
FOLDER/bad_rows.json     the rows that were left out: file, line, why
FOLDER/checkpoints/      what training goes on from after a kill
FOLDER/metrics.jsonl     one line a logged step
FOLDER/tensorboard/      the same for TensorBoard
FOLDER/lock              held by whoever trains it
FOLDER/ray/              Ray Train's own, when the job ran under it
FOLDER/weights/          the product: safetensors and what loads them; there once the run is finished
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from finetune.errors import JobError
from finetune.settings import JobSettings

COMPLETE = "COMPLETE"
"""A file that is written into a checkpoint last: one without it was cut off by a kill."""


class Run:
    """One run of a job. :meth:`open` begins it or finds it again."""

    def __init__(self, job: str, folder: Path) -> None:
        self.job = job
        self.folder = folder

    @classmethod
    def open(cls, job: str, folder: Path, settings: JobSettings, data: Mapping[str, Any]) -> Run:
        """The run in ``folder``, begun if it is not there. Raises :class:`JobError` when another run is."""
        run = cls(job, folder)
        described = {"settings.json": {"job": job, **identity(settings)}, "data.json": dict(data)}
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in described.items():
            path = folder / name
            if path.exists() and (held := json.loads(path.read_text())) != content:
                changed = sorted(key for key in held.keys() | content.keys() if held.get(key) != content.get(key))
                raise JobError(
                    f"{folder} holds another run: {name} differs in {', '.join(changed)}. Choose another --output, or "
                    "remove that folder"
                )
            write_json(path, content)
        return run

    @property
    def finished(self) -> bool:
        return self.weights.exists()

    @property
    def weights(self) -> Path:
        return self.folder / "weights"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def last_checkpoint(self) -> Path | None:
        """The latest whole checkpoint. Those that a kill cut off are removed."""
        whole: dict[int, Path] = {}
        for path in self.checkpoints.glob("checkpoint-*"):
            if (path / COMPLETE).exists():
                whole[int(path.name.rpartition("-")[2])] = path
            else:
                shutil.rmtree(path)
        return whole[max(whole)] if whole else None

    def forget_after(self, step: int) -> None:
        """Takes back what was logged after ``step``: it will be logged again."""
        path = self.folder / "metrics.jsonl"
        if path.exists():
            lines = path.read_text().splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
            write_text(path, "".join(kept))
        for events in (self.folder / "tensorboard").glob("*"):
            if step == 0:
                events.unlink()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")

    @contextmanager
    def held(self, *, patience_s: float = 30.0) -> Iterator[None]:
        """Keeps others from training this run. One who was just killed may need a moment to let it go.

        Raises :class:`JobError` when another process still holds it after ``patience_s``.
        """
        with (self.folder / "lock").open("w") as file:
            deadline = time.monotonic() + patience_s
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise JobError(f"{self.folder} is being trained by another process: let it end") from None
                    time.sleep(0.2)
                else:
                    break
            yield

    @contextmanager
    def writing_weights(self) -> Iterator[Path]:
        """A folder to save into, which takes the place of :attr:`weights` in one step when all went well."""
        aside = self.folder / "weights.new"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        yield aside
        shutil.rmtree(self.weights, ignore_errors=True)
        aside.rename(self.weights)


def identity(settings: JobSettings) -> dict[str, Any]:
    """What makes a run the run it is, of its settings."""
    shaping: dict[str, Any] = settings.model_dump(mode="json", exclude=set(settings.aside))
    return shaping


def digest(settings: JobSettings, data: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits that name a run by its settings and its data."""
    text = json.dumps([identity(settings), data], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def write_json(path: Path, content: object) -> None:
    write_text(path, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Whole or not at all, whatever kills the writer, and whoever else writes it."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.new")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
