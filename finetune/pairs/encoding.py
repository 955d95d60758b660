"""Groups as tensors, and their loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from finetune.pairs.groups import VERIFIER, Group
from models.pair_heads import encode, pad

Encoding = dict[str, list[int]]
_SETTLED_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Encoded:
    """The rows of a group with their labels; ``task`` counts in the job's tasks."""

    task: int
    rows: tuple[Encoding, ...]
    labels: tuple[bool, ...]

    @property
    def longest(self) -> int:
        return max(len(row["input_ids"]) for row in self.rows)


def encoded(
    groups: Sequence[Group], tokenizer: Any, tasks: Sequence[str], window: int, shape: str
) -> Iterator[Encoded]:
    """The groups that are left when rows are left out whose settled text would fill most of the window."""
    for group in groups:
        fitting = [row for row in group.rows if _fits(row.settled, tokenizer, int(window * _SETTLED_SHARE))]
        rows = tuple(
            encode(tokenizer, row.settled, row.document, window)
            if shape == "heads"
            else plain(tokenizer, row.settled, row.document, window, document_first=group.task == VERIFIER)
            for row in fitting
        )
        if rows:
            yield Encoded(tasks.index(group.task), rows, tuple(row.label for row in fitting))


def plain(tokenizer: Any, settled: str, document: str, window: int, *, document_first: bool) -> Encoding:
    """One row as a sequence classifier reads it, the settled text whole, in the order that the product puts it."""
    texts, cut = ((document, settled), "only_first") if document_first else ((settled, document), "only_second")
    return dict(tokenizer(*texts, truncation=cut, max_length=window, split_special_tokens=True))


def _fits(settled: str, tokenizer: Any, most: int) -> bool:
    # No token is shorter than a character.
    return len(settled) <= most or len(tokenizer.tokenize(settled)) <= most


def collate(batch: Sequence[Encoded], *, padding: int) -> dict[str, torch.Tensor]:
    """The rows of some groups, padded, with ``task``, ``labels`` and ``group`` of shape (rows,)."""
    tensors = pad([row for one in batch for row in one.rows], padding)
    tensors["task"] = torch.tensor([one.task for one in batch for _ in one.rows])
    tensors["labels"] = torch.tensor([float(label) for one in batch for label in one.labels])
    tensors["group"] = torch.tensor([number for number, one in enumerate(batch) for _ in one.rows])
    return tensors


def loss(model: torch.nn.Module, batch: dict[str, torch.Tensor], *, ranking: float, dtype: str) -> torch.Tensor:
    """Cross-entropy of each row, and of each right row against each wrong one of its group."""
    given = dict(batch)
    labels, group = given.pop("labels"), given.pop("group")
    with torch.autocast(labels.device.type, dtype=torch.bfloat16, enabled=dtype == "bfloat16"):
        logits = model(**given)
    logits = logits.float()
    alone = binary_cross_entropy_with_logits(logits, labels)
    right, wrong = labels > 0.5, labels < 0.5
    pairs = right[:, None] & wrong[None, :] & (group[:, None] == group[None, :])
    if not ranking or not pairs.any():
        return alone
    apart = softplus(logits[None, :] - logits[:, None])[pairs].mean()
    return (1 - ranking) * alone + ranking * apart
