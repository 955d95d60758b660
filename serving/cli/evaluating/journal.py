"""The file that a run writes its cases into as they finish, and goes on from.

The first line says which run it is of. Each case is one line, written whole and flushed to the disk; a line that was
cut off (a full disk, a killed process) is taken away when the file is opened again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from serving.cli.evaluating.errors import EvaluationError, RunStoppedError
from serving.cli.evaluating.kept import C, Kept


class Journal(Kept[C]):
    """The cases of one run, kept in a file."""

    def __init__(self, path: Path, kind: type[C], run: dict[str, Any], *, fresh: bool = False) -> None:
        """Opens the file, or begins it. Raises :class:`EvaluationError` when it is of another run."""
        super().__init__()
        self._path = path
        self._kind = kind
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise EvaluationError(f"cannot write {path}: {error.strerror}; choose another folder with --out") from error
        try:
            self._size = 0 if fresh else self._read(run)
            os.truncate(self._file, self._size)
            if self._size == 0:
                self._write(json.dumps({"run": run}))
        except BaseException:
            os.close(self._file)
            raise

    def append(self, case: C) -> None:
        """Raises :class:`RunStoppedError` when it cannot be written; what stands in the file stays whole."""
        self._write(case.model_dump_json())
        super().append(case)

    def close(self) -> None:
        os.close(self._file)

    def _read(self, run: dict[str, Any]) -> int:
        """Reads the cases and returns where the last whole line ends; 0 for a file that has none."""
        whole = self._path.read_bytes()
        whole = whole[: whole.rfind(b"\n") + 1]
        head, *lines = whole.splitlines() or [b""]
        if not head:
            return 0
        try:
            begun = json.loads(head)["run"]
            cases = [self._kind.model_validate_json(line) for line in lines]
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise EvaluationError(
                f"{self._path} is no record of such a run; choose another folder with --out, or begin anew with --fresh"
            ) from error
        changed = sorted(name for name in begun.keys() | run.keys() if begun.get(name) != run.get(name))
        if changed:
            raise EvaluationError(
                f"{self._path} is of another run ({', '.join(changed)} changed); choose another folder with --out, or "
                "begin anew with --fresh"
            )
        self._cases = {case.id: case for case in cases}
        return len(whole)

    def _write(self, line: str) -> None:
        data = f"{line}\n".encode(errors="replace")
        try:
            os.lseek(self._file, self._size, os.SEEK_SET)
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
            os.fsync(self._file)
        except OSError as error:
            os.truncate(self._file, self._size)
            raise RunStoppedError(
                f"cannot write {self._path}: {error.strerror}; {len(self.finished)} finished cases are kept, make room "
                "and run the same command again"
            ) from error
        self._size += len(data)
