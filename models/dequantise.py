"""Turns a GGUF file into a folder of float32 safetensors with its tokenizer, configuration and chat template.

A program (``python -m models.dequantise SOURCE FOLDER``), not a part to import: run in a process of its own, it takes
torch and the weights out of memory with it when it is done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from models.errors import ModelUnusableError
from models.gguf import GgufFile


def dequantise(source: Path, folder: Path) -> None:
    """Writes the model in ``source`` to ``folder``.

    Raises :class:`~models.errors.ModelUnusableError` for a tokenizer that is not known to come out the same.
    """
    pre_tokenizer = _pre_tokenizer(GgufFile(source).text("tokenizer.ggml.pre"), source.name)
    tokenizer: Any = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    if not tokenizer.chat_template:
        raise ModelUnusableError(f"{source.name} has no chat template: use a model tuned for chat.")
    # What is left in GGUF blocks cannot be saved again, so it is unpacked while loading.
    model: Any = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    )
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _pre_tokenizer(kind: str, name: str) -> Any:
    """How a text is cut before merging. transformers cuts every byte-level GGUF the way GPT-2 does, so it is set here.

    ``smollm`` takes digits one at a time: without that, spaces before a number come out as other tokens than those the
    model was trained on.
    """
    if kind == "smollm":
        return Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    raise ModelUnusableError(
        f"{name} cuts text the {kind or 'unnamed'!r} way, which is not known here: use the model's safetensors instead "
        "(path:FOLDER or hub:ORG/NAME)."
    )


if __name__ == "__main__":
    try:
        dequantise(Path(sys.argv[1]), Path(sys.argv[2]))
    except ModelUnusableError as error:
        sys.exit(error.message)
