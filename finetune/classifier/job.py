"""The classifier job: the weights that route a query before any model runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from finetune.classifier.examples import ClassifierInputs, describe, given, written
from finetune.classifier.fitting import Fitted, fit
from finetune.classifier.judging import Learning, recipe_of
from finetune.classifier.settings import ClassifierSettings
from finetune.run import Run
from finetune.training import say
from models.classifier import Head, Judged, save


def preview(settings: ClassifierSettings, inputs: ClassifierInputs) -> str:
    real = given(inputs.routes)
    made = written(settings, real, [row for one in inputs.topics for row in one.rows], inputs.names)
    return f"{len(real)} given queries and {len(made)} that code writes: {describe([*real, *made])}"


def train(run: Run, settings: ClassifierSettings, inputs: ClassifierInputs, base: Path) -> None:  # noqa: ARG001
    """Learns from everything, with the calibration that leaving sources out gives.

    A killed run begins again: it takes minutes.
    """
    learning = Learning.of(settings, inputs)
    run.forget_after(0)
    left_out = learning.left_out(settings)
    with SummaryWriter(str(run.folder / "tensorboard")) as events:
        for step, (source, right) in enumerate(_right_by_source(learning, left_out.decisions), start=1):
            run.log(step, {f"right without {source}": right})
            events.add_scalar(f"right without {source}", right, step)
    heads = left_out.heads
    model = fit(learning.features, learning.examples, settings)
    say(f"search from {heads[0].threshold:.4f}, agentic from {heads[1].threshold:.2f}")
    with run.writing_weights() as folder:
        save(folder, settings.grams.grams(), _with_bias(heads, model), model.weights, recipe_of(settings))


def _right_by_source(learning: Learning, decisions: Sequence[Judged]) -> list[tuple[str, float]]:
    found: dict[str, list[bool]] = {}
    for one, decision in zip(learning.real, decisions, strict=True):
        found.setdefault(one.source, []).append(one.route is decision.route)
    return [(source, sum(right) / len(right)) for source, right in sorted(found.items())]


def _with_bias(heads: tuple[Head, Head], model: Fitted) -> tuple[Head, Head]:
    search, agentic = heads
    return replace(search, bias=model.biases[0]), replace(agentic, bias=model.biases[1])
