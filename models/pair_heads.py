"""One encoder, several small heads: what the pair classifiers that this project trains are made of.

A row is a settled text (a query, a claim) and a document. Each token is marked with the side it stands on and with
whether it stands on the other side too, so that what word overlap knows need not be learned. A head reads the mean and
the maximum over the settled text's tokens and the mean over all: a claim is as good as its weakest word.

The word embeddings are the base model's and stay as they are: saved are the layers and the heads alone, in half
precision, and loading puts them together with the base, which must be the very same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoModel

from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.heads_config import KIND, HeadsConfig

DOCUMENT, SETTLED, SHARED, SPECIAL = 0, 2, 1, 4
MARKS = 5
_FAR = -1e4


class PairHeads(nn.Module):
    """``forward`` gives a logit for every row and task."""

    def __init__(self, encoder: Any, tasks: Sequence[str], width: int) -> None:
        super().__init__()
        hidden = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.tasks = tuple(tasks)
        self.marks = nn.Embedding(MARKS * len(self.tasks), hidden)
        nn.init.zeros_(self.marks.weight)
        self.heads = nn.ModuleDict(
            {task: nn.Sequential(nn.Linear(3 * hidden, width), nn.GELU(), nn.Linear(width, 1)) for task in self.tasks}
        )
        for name in ("word_embeddings", "position_embeddings"):
            for parameter in getattr(self.encoder.embeddings, name).parameters():
                parameter.requires_grad_(False)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        marks: torch.Tensor,
        task: torch.Tensor,
        **inputs: torch.Tensor,
    ) -> torch.Tensor:
        """Tokens, mask and marks are of shape (n, longest), ``task`` of shape (n,); the logits of shape (n,)."""
        words = self.encoder.get_input_embeddings()(input_ids)
        words = words + self.marks(marks + MARKS * task[:, None])
        states = self.encoder(inputs_embeds=words, attention_mask=attention_mask, **inputs).last_hidden_state.float()
        settled = ((marks == SETTLED) | (marks == SETTLED + SHARED)) & (attention_mask == 1)
        pooled = torch.cat(
            [
                _mean(states, settled),
                states.masked_fill(~settled[..., None], _FAR).amax(dim=1),
                _mean(states, attention_mask == 1),
            ],
            dim=-1,
        )
        logits = torch.cat([self.heads[name](pooled) for name in self.tasks], dim=-1)
        return logits.gather(1, task[:, None])[:, 0]


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    share = mask.to(states.dtype) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.einsum("nlh,nl->nh", states, share)


def marks(tokens: Sequence[int], sides: Sequence[int | None]) -> list[int]:
    """The mark of each token. ``sides``: 0 the settled text's, 1 the document's, None a special token."""
    held = [{token for token, side in zip(tokens, sides, strict=True) if side == one} for one in (0, 1)]
    return [
        SPECIAL if side is None else (SETTLED if side == 0 else DOCUMENT) + (SHARED if token in held[1 - side] else 0)
        for token, side in zip(tokens, sides, strict=True)
    ]


def encode(tokenizer: Any, settled: str, document: str, window: int) -> dict[str, list[int]]:
    """One row: the settled text whole, the document cut to what the window leaves."""
    found = tokenizer(settled, document, truncation="only_second", max_length=window, split_special_tokens=True)
    return {**found, "marks": marks(found["input_ids"], found.sequence_ids(0))}


def pad(rows: Sequence[Mapping[str, Sequence[int]]], padding: int) -> dict[str, torch.Tensor]:
    """Tensors of shape (n, longest); padding tokens are masked and marked as special."""
    longest = max(len(row["input_ids"]) for row in rows)
    filling = {"input_ids": padding, "marks": SPECIAL}
    return {
        name: torch.tensor([[*row[name], *[filling.get(name, 0)] * (longest - len(row[name]))] for row in rows])
        for name in rows[0]
    }


def fresh(base: Path, tasks: Sequence[str], width: int) -> PairHeads:
    """New heads on the encoder in ``base``, which is to be trained. Without dropout: it is slow on a CPU, and what is
    seen once is not learned by heart.
    """
    return PairHeads(_encoder(base, attn_implementation="eager"), tasks, width)


def save(model: PairHeads, config: HeadsConfig, folder: Path) -> None:
    """What was trained, in half precision, and the configuration."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    tensors = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items() if name in trained}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config.write(folder)


def load(folder: Path, base: Path, *, attention: str | None = None) -> PairHeads:
    """The model in ``folder`` over its base. ``attention`` is SDPA where the base can, unless it is said.

    Raises :class:`~models.errors.ModelUnusableError` for another base.
    """
    config = HeadsConfig.read(folder)
    if config is None:
        raise ModelUnusableError(f"{folder} holds no heads: its config.json must say kind {KIND!r}.")
    if fingerprint(base) != config.base_version:
        raise ModelUnusableError(
            f"{folder} was trained on {config.base} in version {config.base_version}, and {base} holds "
            f"{fingerprint(base)}: install the version that pyproject.toml names."
        )
    model = PairHeads(_encoder(base, attn_implementation=attention), config.tasks, config.width)
    missing, unexpected = model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    lacking = {name for name, parameter in model.named_parameters() if parameter.requires_grad} & set(missing)
    if lacking or unexpected:
        raise ModelUnusableError(f"{folder} lacks {sorted(lacking)[:3]} or holds more than heads: save it again.")
    return model.eval()


def _encoder(base: Path, **options: Any) -> Any:
    """The encoder in ``base``."""
    try:
        return AutoModel.from_pretrained(
            base,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            add_pooling_layer=False,
            **options,
        )
    except (OSError, ValueError, TypeError) as error:
        raise ModelUnusableError(f"{base} does not load as an encoder: {error}") from error
