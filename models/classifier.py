"""The trained query classifier: two linear heads over hashed n-grams, each with a calibrated probability.

The first head says whether a query wants to go somewhere (``search``), the second whether a question needs more than
one look (``agentic``). In doubt neither does: a question takes a single pass. The second head reads no characters, so
that what a question is about counts for little.

A folder of weights holds ``config.json`` (the n-grams, the calibration and the thresholds) and ``model.safetensors``
(for each head ``2 ** bits`` weights in half precision).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.ngrams import Grams, Hashed
from serving.answer.types import Deadline, Route, Routing

FORMAT = 1
MODEL_TYPE = "ngram-classifier"
_FILE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Head:
    """A score and the probability it means: ``sigmoid(scale * (score + bias) + offset)`` (Platt's calibration).

    At ``threshold`` or above the answer is yes.
    """

    bias: float
    scale: float = 1.0
    offset: float = 0.0
    threshold: float = 0.5

    def probability(self, score: float) -> float:
        return _sigmoid(self.scale * (score + self.bias) + self.offset)


@dataclass(frozen=True, slots=True)
class Judged:
    """The route of a query, its probability, and what both heads said."""

    route: Route
    probability: float
    search: float
    agentic: float


def decide(search: float, agentic: float, *, search_above: float, agentic_above: float) -> Judged:
    """The route by the probabilities of "goes somewhere" and of "needs several looks, if it goes nowhere"."""
    if search >= search_above:
        return Judged(Route.SEARCH, search, search, agentic)
    if agentic >= agentic_above:
        return Judged(Route.AGENTIC, (1.0 - search) * agentic, search, agentic)
    return Judged(Route.SINGLE_PASS, (1.0 - search) * (1.0 - agentic), search, agentic)


class NgramClassifier:
    """The seam ``Classifier`` on trained weights: no state, never an error, the same route for the same string.

    Raises :class:`~models.errors.ModelUnusableError` for a folder that holds other weights.
    """

    def __init__(self, folder: Path) -> None:
        self.name = f"{folder.name}@{fingerprint(folder)}"
        grams, self.search, self.agentic = _described(folder)
        self.grams = grams
        self._search, self._agentic = _weights(folder, 2**grams.bits)

    async def classify(self, question: str, *, deadline: Deadline) -> Routing:  # noqa: ARG002
        judged = self.judge(question)
        return Routing(judged.route, f"classifier {judged.probability:.2f}")

    def judge(self, question: str) -> Judged:
        """Of any string, the empty one and one of a million characters too: only its two ends are read."""
        search, agentic = scores(self.grams.hashed(question), self._search, self._agentic)
        return decide(
            self.search.probability(search),
            self.agentic.probability(agentic),
            search_above=self.search.threshold,
            agentic_above=self.agentic.threshold,
        )


def scores(hashed: Hashed, search: NDArray[Any], agentic: NDArray[Any]) -> tuple[float, float]:
    """What the weights of both heads say of a text, before bias and calibration."""
    after = hashed.letters
    return (
        float(search[hashed.buckets] @ hashed.weights),
        float(agentic[hashed.buckets[after:]] @ hashed.weights[after:]),
    )


def save(
    folder: Path,
    grams: Grams,
    heads: tuple[Head, Head],
    weights: tuple[NDArray[Any], NDArray[Any]],
    recipe: dict[str, Any],
) -> None:
    """Writes weights that :class:`NgramClassifier` reads. ``recipe`` says how they were made."""
    described = {
        "model_type": MODEL_TYPE,
        "format": FORMAT,
        "grams": asdict(grams),
        "search": asdict(heads[0]),
        "agentic": asdict(heads[1]),
        "recipe": recipe,
    }
    (folder / "config.json").write_text(json.dumps(described, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    named = zip(("search", "agentic"), weights, strict=True)
    save_file({name: np.ascontiguousarray(values, dtype=np.float16) for name, values in named}, folder / _FILE)


def describe(folder: Path) -> dict[str, Any]:
    """The content of ``config.json``, checked to be this classifier's."""
    path = folder / "config.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnusableError(
            f"{path} cannot be read ({error}): give the folder of a trained classifier."
        ) from error
    if not isinstance(found, dict) or (found.get("model_type"), found.get("format")) != (MODEL_TYPE, FORMAT):
        raise ModelUnusableError(
            f"{folder} holds no {MODEL_TYPE} of format {FORMAT}: give shipped:classifier, or train one with "
            "`python -m finetune classifier`."
        )
    return found


def _described(folder: Path) -> tuple[Grams, Head, Head]:
    found = describe(folder)
    try:
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in found["grams"].items()
        }
        return Grams(**given), Head(**found["search"]), Head(**found["agentic"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelUnusableError(f"{folder}/config.json is damaged ({error}): copy the folder again.") from error


def _weights(folder: Path, buckets: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    try:
        found = load_file(folder / _FILE)
        search, agentic = found["search"], found["agentic"]
    except (OSError, SafetensorError, KeyError) as error:
        raise ModelUnusableError(f"{folder / _FILE} cannot be read ({error}): copy the folder again.") from error
    if search.shape != (buckets,) or agentic.shape != (buckets,):
        raise ModelUnusableError(f"{folder / _FILE} has weights of other n-grams than its config.json says.")
    return search.astype(np.float32), agentic.astype(np.float32)


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))
