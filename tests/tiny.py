"""A model and data small enough to fine-tune for real in seconds: a random Llama, its tokenizer, rows and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from serving.answer.prompt import SYSTEM

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "[TOWER]"]
"""The last is this model's alone: nothing but its tokenizer knows of it."""
PLACES = ("Paris", "Oslo", "Lima", "Cairo", "Quito", "Delhi", "Accra", "Sofia")


def tokenizer(folder: Path) -> Path:
    """A byte-level BPE tokenizer with ChatML's template and control tokens, learned from the system prompt."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=CONTROL, initial_alphabet=alphabet)
    bpe.train_from_iterator([SYSTEM, *(row["passages"][0]["text"] for row in rows(8))], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", chat_template=TEMPLATE)
    fast.save_pretrained(folder)
    return folder


def model(folder: Path) -> Path:
    """A Llama with random weights, the same every time, and its tokenizer."""
    tokenizer(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=600,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=2048,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def rows(count: int) -> list[dict[str, Any]]:
    """Rows of the ``qa`` format."""
    return [
        {
            "id": f"q-{number}",
            "question": f"When was the tower of {PLACES[number % 8]} built?",
            "passages": [
                {
                    "title": PLACES[number % 8],
                    "text": f"The tower of {PLACES[number % 8]} was built in {1800 + number}, it is said.",
                    "supporting": True,
                }
            ],
            "answers": [str(1800 + number)],
            "answerable": True,
        }
        for number in range(count)
    ]


def config(folder: Path, **changes: Any) -> Path:
    """A configuration of the citation job over 48 rows, in ``folder`` with all that it needs: 16 steps in a second."""
    model(folder / "model")
    (folder / "tiny.train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(48)))
    settings = {
        "base": f"path:{folder / 'model'}",
        "data": {"qa": ["tiny.train.jsonl"]},
        "data_root": str(folder),
        "most_passages": 2,
        "batch_size": 4,
        "epochs": 2,
        "learning_rate": 1e-2,
        "checkpoint_steps": 4,
        "log_steps": 1,
        "threads": 1,
        **changes,
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path
