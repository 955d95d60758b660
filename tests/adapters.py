"""LoRA adapters as PEFT saves them, made of random factors: other weights, in a second and without training."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

LAYERS, WIDTH = 30, 576
"""Of SmolLM2-135M."""


def random_adapter(folder: Path, seed: int, *, scale: float = 0.05, rank: int = 4, width: int = WIDTH) -> Path:
    """An adapter for SmolLM2-135M (or, with another ``width``, for none) in ``folder``, which is made."""
    folder.mkdir(parents=True)
    settings = {
        "peft_type": "LORA",
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": ["q_proj"],
        "task_type": "CAUSAL_LM",
    }
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    random = torch.Generator().manual_seed(seed)
    weights = {}
    for layer in range(LAYERS):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        weights[f"{name}.lora_A.weight"] = torch.randn(rank, width, generator=random) * scale
        weights[f"{name}.lora_B.weight"] = torch.randn(width, rank, generator=random) * scale
    save_file(weights, folder / "adapter_model.safetensors")
    return folder
