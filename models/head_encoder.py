"""Pair classification with one of the heads of :mod:`models.pair_heads`, calibrated, behind the same methods."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from models.cpu import cpu_flags, resolve_dtype
from models.encoder import Order, PairEncoder
from models.errors import ModelUnusableError
from models.features import features
from models.heads_config import Calibration, HeadsConfig
from models.pair_heads import encode, load, pad

_CPU_BATCH_TOKENS = 2048
"""What stays in a CPU's caches: batches of four times that took half again as long a token."""


class HeadEncoder(PairEncoder):
    """Scores pairs in [0, 1] with the head ``head`` of the weights in ``folder``, over the encoder in ``base``.

    On a CPU that multiplies bfloat16 the encoder computes in it, as it did in training: three times faster.
    """

    def __init__(self, folder: Path, *, base: Path, head: str, threads: int, **options: Any) -> None:
        config = HeadsConfig.read(folder)
        if config is None or head not in config.tasks:
            held = ", ".join(config.tasks) if config else "none"
            raise ModelUnusableError(f"{folder} holds no head {head!r}; its heads: {held}.")
        self._config, self._base = config, base
        self.turn_to(head)
        super().__init__(folder, order="settled_first", threads=threads, **options)
        on_cpu = self._device.type == "cpu"
        if on_cpu and not options.get("batch_tokens"):
            self._batch_tokens = _CPU_BATCH_TOKENS
        self._bfloat16 = on_cpu and resolve_dtype("auto", flags=cpu_flags()) == "bfloat16"

    def beside(self, head: str) -> HeadEncoder | None:
        if head not in self._config.tasks:
            return None
        other = copy.copy(self)
        other.turn_to(head)
        return other

    def turn_to(self, head: str) -> None:
        """Scores with another head from now on."""
        self._task = self._config.tasks.index(head)
        self._calibration = self._config.calibration.get(head, Calibration())

    @property
    def threshold(self) -> float:
        """The score from which on a pair counts, as the head's own calibration has it."""
        return self._calibration.threshold

    def _load(self, folder: Path) -> int:
        self._model: Any = load(folder, self._base).to(self._device)
        return self._config.window

    def _encode(self, document: str, settled: str) -> dict[str, list[int]]:
        return encode(self._tokenizer, settled, document, self.max_tokens)

    @torch.inference_mode()
    def _forward(self, rows: list[dict[str, list[int]]]) -> list[float]:
        inputs = {name: tensor.to(self._device) for name, tensor in pad(rows, self._tokenizer.pad_token_id).items()}
        task = torch.full((len(rows),), self._task, device=self._device)
        with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=self._bfloat16):
            logits: list[float] = self._model(task=task, **inputs).float().tolist()
        return logits

    def _settled(self, pairs: Sequence[tuple[str, str]], scores: list[float]) -> list[float]:
        given = self._calibration
        return [
            calibrated(score, given, features(document, settled) if given.weights else ())
            for score, (document, settled) in zip(scores, pairs, strict=True)
        ]


def calibrated(logit: float, given: Calibration, counted: Sequence[float]) -> float:
    """The probability of a logit and of what words say beside it."""
    value = given.scale * logit + given.bias
    value += math.fsum(weight * one for weight, one in zip(given.weights, counted, strict=True))
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))


def open_pairs(
    folder: Path, *, order: Order, head: str, base: Path | None, threads: int, **options: Any
) -> PairEncoder:
    """What scores pairs with the model in ``folder``: its head ``head`` over ``base`` when it stands on one, else the
    sequence classifier that it is, which reads a pair in ``order``. ``options`` are those of :class:`PairEncoder`.
    """
    if base is not None:
        return HeadEncoder(folder, base=base, head=head, threads=threads, **options)
    return PairEncoder(folder, order=order, threads=threads, **options)
