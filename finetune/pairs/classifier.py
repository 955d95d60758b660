"""Whole sequence classifiers: what is trained where the encoder is large, and what other servers load too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

_LABEL = "entailment"


class Classifier(nn.Module):
    """A classifier of one label, with the forward pass of :class:`models.pair_heads.PairHeads`."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        self.model: Any = AutoModelForSequenceClassification.from_pretrained(
            base,
            local_files_only=True,
            dtype=torch.float32,
            num_labels=1,
            id2label={0: _LABEL},
            label2id={_LABEL: 0},
            ignore_mismatched_sizes=True,
        )

    def forward(self, task: torch.Tensor, **inputs: torch.Tensor) -> torch.Tensor:
        """The logits of n rows, of shape (n,)."""
        del task  # there is one
        logits: torch.Tensor = self.model(**inputs).logits[:, 0]
        return logits

    def save(self, folder: Path) -> None:
        """In half precision, as :class:`models.encoder.PairEncoder` loads it."""
        self.model.half().save_pretrained(folder)
