"""What a GGUF file says of itself, read without loading its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.errors import ModelUnusableError

_FLOAT32 = 4


class GgufFile:
    """The header of a GGUF file.

    Raises :class:`~models.errors.ModelUnusableError` when it is not one.
    """

    def __init__(self, path: Path) -> None:
        try:
            from gguf import GGUFReader  # noqa: PLC0415 (the CPU target alone installs it)
        except ImportError:
            raise ModelUnusableError(f"{path.name} is a GGUF file: run `pip install gguf` to read it.") from None
        try:
            self._reader: Any = GGUFReader(path)
        except (OSError, ValueError) as error:
            raise ModelUnusableError(f"{path.name} cannot be read as GGUF ({error}): fetch it again.") from error

    def float32_bytes(self) -> int:
        """The size of the weights once dequantised."""
        return sum(int(tensor.n_elements) for tensor in self._reader.tensors) * _FLOAT32

    def text(self, key: str) -> str:
        """The value of a text field, or the empty string."""
        field = self._reader.get_field(key)
        return "" if field is None else str(field.contents())
