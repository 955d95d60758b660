"""Counts tokens with a model's tokenizer and nothing else of it: cheap enough for a process that loads no model."""

from __future__ import annotations

import re
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from models.errors import ModelNotFoundError
from models.text import readable

_CONTROL = re.compile(r"[<\[|].*[>\]|]", re.DOTALL)  # <|im_end|>, </think>, [INST]


def is_control(token: AddedToken) -> bool:
    """Whether a token says something of the conversation's form, by its flag or by how it is written."""
    return token.special or _CONTROL.fullmatch(token.content) is not None


class TokenizerCounter:
    """The seam :class:`~serving.answer.seams.TokenCounter`, over the ``tokenizer.json`` of a model folder."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ModelNotFoundError(f"{folder} has no tokenizer.json: save the model's fast tokenizer there.")
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @property
    def control_tokens(self) -> tuple[str, ...]:
        """The model's control tokens as they are written, such as ``<|im_end|>``, in the tokenizer's order."""
        added = sorted(self._tokenizer.get_added_tokens_decoder().items())
        return tuple(token.content for _, token in added if is_control(token))

    def count(self, text: str) -> int:
        """The number of tokens of ``text``, without the special tokens that would frame it."""
        return len(self._tokenizer.encode(readable(text), add_special_tokens=False).ids)


class EstimatingCounter:
    """The seam :class:`~serving.answer.seams.TokenCounter` for a model whose tokenizer is not here.

    One token for every two bytes of UTF-8: more than tokenizers make of text in any language, so that less is put into
    the window than would fit.
    """

    control_tokens: tuple[str, ...] = ()

    def count(self, text: str) -> int:
        return (len(text.encode("utf-8", "replace")) + 1) // 2
