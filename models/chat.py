"""Turns chat messages into token ids, so that no message can speak for another.

The chat template is rendered around placeholders and tokenised as it stands; the contents are tokenised apart, with
control tokens taken as plain text, and put in between. ``<|im_end|>`` inside a message is five harmless words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer

from models.errors import ModelUnusableError
from models.text import readable
from models.tokens import is_control
from serving.answer.types import Message

_PLACEHOLDER = "PLACEHOLDER{}OF{}MESSAGES"


class ChatEncoder:
    """Encodes messages with a model's chat template and its (fast) transformers tokenizer.

    Raises :class:`~models.errors.ModelUnusableError` when there is no template, or the template does not leave contents
    as they are.
    """

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ModelUnusableError("The model has no chat template: use one tuned for chat.")
        self._template = tokenizer
        # Copies, so that nothing is shared with whoever else uses the tokenizer.
        self._frame = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._content = _without_control(self._frame)
        self.control: frozenset[int] = frozenset(
            number for number, token in self._frame.get_added_tokens_decoder().items() if is_control(token)
        )
        self.encode([Message("user", "")])

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of ``messages`` and of the opening of the reply. Control tokens come from the template alone."""
        ids: list[int] = []
        frame = self._render(len(messages), [message.role for message in messages])
        for piece, message in zip(frame, [*messages, None], strict=True):
            ids += self._frame.encode(piece, add_special_tokens=False).ids
            if message is not None:
                ids += self._content.encode(readable(message.content), add_special_tokens=False).ids
        return ids

    def _render(self, count: int, roles: Sequence[str]) -> list[str]:
        """The template's text before, between and after the contents."""
        marks = [_PLACEHOLDER.format(number, count) for number in range(count)]
        turns = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        rest: str = self._template.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        pieces: list[str] = []
        for mark in marks:
            piece, found, rest = rest.partition(mark)
            if not found or mark in rest:
                raise ModelUnusableError("The model's chat template drops, repeats or reorders messages: use another.")
            pieces.append(piece)
        return [*pieces, rest]


def _without_control(tokenizer: Tokenizer) -> Tokenizer:
    """A copy of ``tokenizer`` that reads control tokens as the characters they are written in."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    control = [token for token in copy.get_added_tokens_decoder().values() if is_control(token)]
    copy.add_special_tokens([token.content for token in control if not token.special])
    copy.encode_special_tokens = True
    return copy
