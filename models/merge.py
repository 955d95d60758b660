"""Adds a LoRA adapter into the weights it was trained on: the same model, at the speed of the bare one.

vLLM on a CPU reads a prompt an order of magnitude slower beside an adapter than without; merged, it costs nothing.

A program (``python -m models.merge BASE ADAPTER FOLDER``), run in a process of its own as :mod:`models.dequantise` is.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from models.errors import ModelUnusableError
from models.lora import FACTORS, PREFIX, check_fits


def merge(base: Path, adapter: Path, folder: Path) -> None:
    """Writes the model in ``base`` to ``folder`` with ``adapter`` (as PEFT saves it) added in, in the base's own types.

    Raises :class:`~models.errors.ModelUnusableError` when the adapter is not plain LoRA or is not for this model.
    """
    check_fits(base, adapter)
    deltas = _deltas(adapter)
    for path in base.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copyfile(path, folder / path.name)
    for path in sorted(base.glob("*.safetensors")):
        weights = load_file(path)
        for name in weights.keys() & deltas.keys():
            weights[name] = (weights[name].float() + deltas[name]).to(weights[name].dtype)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
        save_file(weights, folder / path.name, metadata)


def _deltas(adapter: Path) -> dict[str, torch.Tensor]:
    """What the adapter adds to each weight, by the weight's name in the base model."""
    settings: dict[str, Any] = json.loads((adapter / "adapter_config.json").read_text())
    rank = int(settings["r"])
    scale = settings["lora_alpha"] / (math.sqrt(rank) if settings.get("use_rslora") else rank)
    factors: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in load_file(adapter / "adapter_model.safetensors").items():
        suffix = next(suffix for suffix in FACTORS if key.endswith(suffix))
        name = key.removeprefix(PREFIX).removesuffix(suffix) + ".weight"
        factors.setdefault(name, {})[FACTORS[suffix]] = tensor.float()
    return {name: scale * pair["B"] @ pair["A"] for name, pair in factors.items()}


if __name__ == "__main__":
    try:
        merge(*map(Path, sys.argv[1:4]))
    except ModelUnusableError as error:
        sys.exit(error.message)
