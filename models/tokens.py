"""Counts tokens with a model's tokenizer and nothing else of it: cheap enough for a process that loads no model."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from models.errors import ModelNotFoundError
from models.text import readable


class TokenizerCounter:
    """The seam :class:`~serving.answer.seams.TokenCounter`, over the ``tokenizer.json`` of a model folder."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ModelNotFoundError(f"{folder} has no tokenizer.json: save the model's fast tokenizer there.")
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        """The number of tokens of ``text``, without the special tokens that would frame it."""
        return len(self._tokenizer.encode(readable(text), add_special_tokens=False).ids)
