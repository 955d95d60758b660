"""Pair classification with one of the heads of :mod:`models.pair_heads`, calibrated, behind the same methods."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from models.cpu import Dtype
from models.encoder import PairEncoder
from models.errors import ModelUnusableError
from models.features import features
from models.heads_config import Calibration, HeadsConfig
from models.pair_heads import SPECIAL, load, marks
from models.pairs import Order, PairRow
from serving.answer.types import PairScore


class HeadEncoder(PairEncoder):
    """Scores pairs in [0, 1] with the head ``head`` of the weights in ``folder``, over the encoder in ``base``.

    On a CPU that multiplies bfloat16 the encoder computes in it unless ``dtype`` says otherwise, as it did in training:
    three times faster. Encoders that stand :meth:`beside` each other share weights, threads and passes.
    """

    def __init__(
        self, folder: Path, *, base: Path, head: str, threads: int, dtype: Dtype = "auto", **options: Any
    ) -> None:
        config = HeadsConfig.read(folder)
        if config is None or head not in config.tasks:
            held = ", ".join(config.tasks) if config else "none"
            raise ModelUnusableError(f"{folder} holds no head {head!r}; its heads: {held}.")
        self._config, self._base = config, base
        self.turn_to(head)
        super().__init__(folder, order="settled_first", threads=threads, dtype=dtype, **options)

    _fillers = MappingProxyType({"marks": SPECIAL})

    def beside(self, head: str) -> HeadEncoder | None:
        if head not in self._config.tasks:
            return None
        other = copy.copy(self)
        other.turn_to(head)
        return other

    def turn_to(self, head: str) -> None:
        """Scores with another head from now on."""
        self._head = self._config.tasks.index(head)
        self._calibration = self._config.calibration.get(head, Calibration())

    @property
    def threshold(self) -> float:
        """The score from which on a pair counts, as the head's own calibration has it."""
        return self._calibration.threshold

    def _reads_as(self, folder: Path) -> Path:
        del folder  # the words are the base's, and so is what makes tokens of them
        return self._base

    def _load(self, folder: Path) -> int:
        # In bfloat16 on a CPU SDPA is a seventh faster, and strays further from float32's ranking than is let pass.
        coarse = self._device.type == "cpu" and self._dtype == "bfloat16"
        self._model: Any = load(folder, self._base, attention="eager" if coarse else None).to(self._device)
        return self._config.window

    @property
    def _body(self) -> str:
        return "encoder"

    def _beside(self, tokens: list[int], sides: list[int | None]) -> dict[str, list[int]]:
        return {"marks": marks(tokens, sides)}

    def _inputs(self, rows: list[PairRow]) -> dict[str, torch.Tensor]:
        return {**super()._inputs(rows), "task": torch.tensor([row.head for row in rows])}

    def _scores(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=self._dtype == "bfloat16"):
            logits: torch.Tensor = self._model(**inputs).float()
        return logits[:, None]

    def _settled(self, pairs: Sequence[tuple[str, str]], best: tuple[PairScore, ...]) -> tuple[PairScore, ...]:
        given = self._calibration
        return tuple(
            replace(one, score=calibrated(one.score, given, features(*pair) if given.weights else ()))
            if one.chunks
            else one
            for one, pair in zip(best, pairs, strict=True)
        )


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
