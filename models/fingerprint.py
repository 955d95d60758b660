"""A short name for a set of weights, for the ``versions`` of an answer."""

from __future__ import annotations

import hashlib
from pathlib import Path

_SAMPLE = 64 * 1024
_DESCRIBED_BY = ("config.json", "adapter_config.json", "modules.json", "generation_config.json")


def fingerprint(folder: Path) -> str:
    """Twelve hex digits that change when the weights in ``folder`` do. Reads at most 192 KiB of each file.

    Hashed are the configuration, and of every safetensors file its name, size, head, middle and tail. The head holds
    the tensors' names, types and shapes; the middle and the tail are weights, which any training moves.
    """
    digest = hashlib.sha256()
    for name in _DESCRIBED_BY:
        path = folder / name
        if path.is_file():
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    for path in sorted(folder.rglob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            for offset in sorted({0, max(0, size // 2), max(0, size - _SAMPLE)}):
                file.seek(offset)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()[:12]
