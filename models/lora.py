"""Whether a LoRA adapter is for a model: read from the heads of both, before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import safe_open

from models.errors import ModelUnusableError

PREFIX = "base_model.model."
"""What PEFT puts before the name of a module of the base model."""

FACTORS = {".lora_A.weight": "A", ".lora_B.weight": "B"}
"""How the names of an adapter's tensors end: a weight's change is the product of B, (out, r), and A, (r, in)."""

_UNSUPPORTED = ("use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "modules_to_save")


def check_fits(base: Path, adapter: Path) -> None:
    """Raises :class:`~models.errors.ModelUnusableError` when ``adapter`` is no plain LoRA for the model in ``base``."""
    settings = adapter / "adapter_config.json"
    if not settings.is_file():
        raise ModelUnusableError(f"{adapter} is no LoRA adapter: it has no adapter_config.json.")
    if unsupported := [name for name in _UNSUPPORTED if json.loads(settings.read_text()).get(name)]:
        raise ModelUnusableError(f"{adapter.name} uses {', '.join(unsupported)}: train a plain LoRA adapter.")
    factors: dict[str, dict[str, tuple[int, ...]]] = {}
    for key, shape in _shapes(adapter).items():
        suffix = next((suffix for suffix in FACTORS if key.endswith(suffix)), None)
        if suffix is None or not key.startswith(PREFIX):
            raise ModelUnusableError(
                f"{adapter.name} holds {key}, which is no LoRA factor: train a plain LoRA adapter."
            )
        name = key.removeprefix(PREFIX).removesuffix(suffix) + ".weight"
        factors.setdefault(name, {})[FACTORS[suffix]] = shape
    weights = _shapes(base)
    for name, pair in factors.items():
        if len(pair) != len(FACTORS):
            raise ModelUnusableError(f"{adapter.name} lacks a factor of {name}: save the adapter again.")
        if name not in weights:
            raise ModelUnusableError(f"{adapter.name} was not trained on {base.name}, which has no {name}.")
        if (pair["B"][0], pair["A"][1]) != weights[name]:
            raise ModelUnusableError(f"{adapter.name} was not trained on {base.name}: {name} has another shape.")
    if not factors:
        raise ModelUnusableError(f"{adapter.name} holds no LoRA factors: save the adapter again.")


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor in the folder's safetensors files. Reads their heads alone."""
    shapes: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="np") as file:
            shapes |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return shapes
