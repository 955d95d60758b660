"""What the configuration of a classifier says: which of its labels count, and how long its rows may be."""

from __future__ import annotations

from typing import Any

from models.families import label_named

_ENDLESS = 10**6  # tokenizers without a limit of their own report an enormous one


def counting_labels(config: Any) -> tuple[int, int | None]:
    """The label that counts, and that of contradictions where being contradicted is more than not being entailed."""
    said = {"id2label": config.id2label, "num_labels": config.num_labels}
    entailed = label_named(said, "entail")
    positive = int(config.num_labels) - 1 if entailed is None else entailed
    return positive, label_named(said, "contradict") if config.num_labels > 2 and entailed is not None else None


def window(config: Any, tokenizer: Any) -> int:
    """How many tokens a row may have."""
    positions = getattr(config, "max_position_embeddings", 0) or _ENDLESS
    if "roberta" in config.model_type:
        positions = learned_positions(config)
    return int(min(positions, tokenizer.model_max_length))


def learned_positions(config: Any) -> int:
    """How many tokens may be in a row before the model has no position for the next.

    RoBERTa's position table begins with rows that no token uses. T5 has none, and DeBERTa seldom.
    """
    positions = int(getattr(config, "max_position_embeddings", 0) or _ENDLESS)
    if "roberta" in config.model_type:
        return positions - int(config.pad_token_id) - 1
    return positions if getattr(config, "position_biased_input", True) else _ENDLESS
