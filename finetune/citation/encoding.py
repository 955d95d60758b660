"""Conversations as token ids: the prompt as the server encodes it, the reply as the model must write it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from finetune.citation.conversations import Conversation
from finetune.training import IGNORED
from models.chat import ChatEncoder
from models.tokens import TokenizerCounter
from serving.answer.context import numbered
from serving.answer.prompt import CONTROL_TOKENS, messages


@dataclass(frozen=True, slots=True)
class Encoded:
    prompt: tuple[int, ...]
    reply: tuple[int, ...]


class Encoder:
    """Encodes conversations for the model in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._chat = ChatEncoder(self._tokenizer)
        self._control = (*CONTROL_TOKENS, *TokenizerCounter(folder).control_tokens)
        self._end = int(self._tokenizer.eos_token_id)

    @property
    def pad(self) -> int:
        """The id that fills up a batch. It is never attended to, nor learned."""
        return self._end

    def encode(self, conversation: Conversation, nonce: str) -> Encoded:
        put = messages(conversation.question, numbered(conversation.passages), nonce, self._control)
        reply = self._tokenizer.encode(conversation.reply, add_special_tokens=False)
        return Encoded(tuple(self._chat.encode(put)), (*reply, self._end))

    def encode_all(self, conversations: Sequence[Conversation], *, seed: int, longest: int) -> list[Encoded]:
        """Each with a nonce of its own, as the server gives every request; those longer than ``longest`` left out."""
        rng = random.Random(seed)  # noqa: S311 (repeatable, and nothing to guard)
        found = [self.encode(conversation, f"{rng.getrandbits(32):08x}") for conversation in conversations]
        return [one for one in found if len(one.prompt) + len(one.reply) <= longest]


def collate(batch: Sequence[Encoded], *, pad: int) -> dict[str, torch.Tensor]:
    """Pads a batch: prompts to the left, all but their last token, and what follows it to the right.

    ``prompt`` and ``prompt_mask`` have the shape (n, longest prompt - 1); ``reply`` (from the prompt's last token on),
    ``reply_mask`` and ``labels`` (n, longest reply).
    """
    wide = max(len(one.prompt) for one in batch) - 1
    long = max(len(one.reply) for one in batch)
    prompts = [_padded(one.prompt[:-1], wide, pad, left=True) for one in batch]
    prompt_masks = [_padded([1] * (len(one.prompt) - 1), wide, 0, left=True) for one in batch]
    replies = [_padded([one.prompt[-1], *one.reply[:-1]], long, pad) for one in batch]
    reply_masks = [_padded([1] * len(one.reply), long, 0) for one in batch]
    labels = [_padded(one.reply, long, IGNORED) for one in batch]
    named = {
        "prompt": prompts,
        "prompt_mask": prompt_masks,
        "reply": replies,
        "reply_mask": reply_masks,
        "labels": labels,
    }
    return {name: torch.tensor(rows) for name, rows in named.items()}


def _padded(ids: Sequence[int], size: int, pad: int, *, left: bool = False) -> list[int]:
    filling = [pad] * (size - len(ids))
    return [*filling, *ids] if left else [*ids, *filling]


def loss(model: torch.nn.Module, batch: dict[str, torch.Tensor], *, held_above: int) -> torch.Tensor:
    """The mean cross-entropy of the reply's tokens.

    Prompts of a batch longer than ``held_above`` tokens are read without gradients.
    """
    mask = torch.cat([batch["prompt_mask"], batch["reply_mask"]], dim=1)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    split = batch["prompt"].shape[1]
    with torch.set_grad_enabled(split <= held_above):
        read = model(
            input_ids=batch["prompt"],
            attention_mask=batch["prompt_mask"],
            position_ids=positions[:, :split],
            use_cache=True,
            logits_to_keep=1,
        )
    written = model(
        input_ids=batch["reply"],
        attention_mask=mask,
        position_ids=positions[:, split:],
        past_key_values=read.past_key_values,
        use_cache=True,
    )
    logits = written.logits.float()
    return torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), batch["labels"].reshape(-1), ignore_index=IGNORED
    )
