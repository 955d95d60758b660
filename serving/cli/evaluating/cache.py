"""Model outputs that were made before, by a hash of everything that shapes them. One SQLite file, shared by runs."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import AsyncGenerator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from serving.answer.seams import Generation, Synthesizer
from serving.answer.types import Deadline, Delta
from serving.cli.evaluating.errors import EvaluationError, RunStoppedError

_NOT_KEPT = (None, "deadline")


class OutputCache:
    """JSON values by key. Safe against other processes that use the same file."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=30.0, isolation_level=None)
            self._file.execute("CREATE TABLE IF NOT EXISTS outputs (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        except (OSError, sqlite3.Error) as error:
            raise EvaluationError(f"the cache {path} cannot be opened: {error}; remove it or make room") from error

    def get(self, key: str) -> Any:
        """The value, None when there is none."""
        row = self._file.execute("SELECT value FROM outputs WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, values: dict[str, Any]) -> None:
        """Raises :class:`RunStoppedError` when the disk is full."""
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        try:
            self._file.execute("BEGIN")
            self._file.executemany("INSERT OR REPLACE INTO outputs VALUES (?, ?)", rows)
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise RunStoppedError(
                f"the cache cannot be written: {error}; make room and run the command again"
            ) from error

    def close(self) -> None:
        self._file.close()


def key_of(*shaping: Any) -> str:
    """A hash of what shapes an output: anything JSON can say."""
    return hashlib.sha256(json.dumps(shaping, sort_keys=True, default=str).encode()).hexdigest()


class CachedSynthesizer:
    """The seam ``Synthesizer``: a reply that the same model wrote to the same prompt before comes at once.

    ``model`` names the weights and their options. ``saved_s`` holds, by request id, the seconds that a reused reply had
    taken. Sampled replies (a temperature above 0) and those that ran into a deadline are not kept.
    """

    def __init__(self, inner: Synthesizer, cache: OutputCache, model: str) -> None:
        self._inner = inner
        self._cache = cache
        self._model = model
        self.saved_s: dict[str, float] = {}

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        shaping = asdict(request)
        del shaping["request_id"]
        key = key_of("generation", self._model, shaping)
        kept = self._cache.get(key) if request.temperature == 0 else None
        if kept is not None:
            self.saved_s[request.request_id] = kept["seconds"]
            yield Delta(kept["text"], kept["finish_reason"], kept["prompt_tokens"], kept["completion_tokens"])
            return
        began = time.monotonic()
        deltas: list[Delta] = []
        async for delta in self._inner.generate(request, deadline=deadline):
            deltas.append(delta)
            yield delta
        last = deltas[-1] if deltas else Delta("")
        if request.temperature == 0 and last.finish_reason not in _NOT_KEPT:
            reply = {
                "text": "".join(delta.text for delta in deltas),
                "finish_reason": last.finish_reason,
                "prompt_tokens": last.prompt_tokens,
                "completion_tokens": last.completion_tokens,
                "seconds": time.monotonic() - began,
            }
            self._cache.put({key: reply})
