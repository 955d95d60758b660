"""``config.json`` of the heads that this project trains, readable without loading a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KIND = "pair_heads"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Makes a logit a probability: the sigmoid of ``scale * logit + bias``, plus ``weights`` times what
    :func:`models.features.features` says of the pair.
    """

    scale: float = 1.0
    bias: float = 0.0
    weights: tuple[float, ...] = ()
    threshold: float = 0.5
    """The score from which on a pair counts, as chosen on development data."""


@dataclass(frozen=True, slots=True)
class HeadsConfig:
    """``config.json`` of saved heads. ``base`` is a model reference, ``base_version`` its fingerprint."""

    base: str
    base_version: str
    tasks: tuple[str, ...]
    width: int
    window: int
    calibration: Mapping[str, Calibration]
    kind: str = KIND

    @classmethod
    def read(cls, folder: Path) -> HeadsConfig | None:
        """The configuration in ``folder``; None when the model there is of another kind."""
        path = folder / "config.json"
        tree: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
        if tree.get("kind") != KIND:
            return None
        calibration = {
            task: Calibration(**{**given, "weights": tuple(given["weights"])})
            for task, given in tree["calibration"].items()
        }
        return cls(**{**tree, "tasks": tuple(tree["tasks"]), "calibration": calibration})

    def write(self, folder: Path) -> None:
        (folder / "config.json").write_text(json.dumps(asdict(self), indent=2) + "\n")
