"""Exact scores from a model that computes in half precision."""

from __future__ import annotations

from typing import Any

import torch

_HEADS = ("classifier", "score", "lm_head")  # what transformers calls the layer that the scores come out of


def keep_head_exact(model: Any) -> Any:
    """``model``, with a last layer that takes float32 and gives float32, whatever the rest computes in.

    Half precision has so few values near a score that neighbours in a ranking become equal and trade places with the
    company that they are computed in. Raises nothing: a model without a head that is known stays as it is.
    """
    head = next(
        (getattr(model, name) for name in _HEADS if isinstance(getattr(model, name, None), torch.nn.Module)), None
    )
    if head is not None:
        head.float()
        head.register_forward_pre_hook(lambda _head, inputs: tuple(_exact(value) for value in inputs))
    return model


def _exact(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
