"""Stand-ins for what tests must not depend on: a model, and what is installed on the machine."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class FakeEmbedder:
    """Hashes each word to a direction and adds them up: texts that share words are near, in every run alike."""

    def __init__(self, dimension: int = 32) -> None:
        self.dimension = dimension
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(len(texts), self.dimension)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self(texts)

    def _vector(self, text: str) -> NDArray[np.float64]:
        total = np.full(self.dimension, 1e-3)
        for word in text.lower().split():
            seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
            total += np.random.default_rng(seed).normal(size=self.dimension)
        return total


class FakeDistribution(Distribution):
    """A distribution that exists only as its METADATA."""

    def __init__(self, name: str, description: str, *, content_type: str = "text/markdown", headers: str = "") -> None:
        kind = f"Description-Content-Type: {content_type}\n" if content_type else ""
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n{kind}{headers}\n{description}"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        return Path(str(path))
