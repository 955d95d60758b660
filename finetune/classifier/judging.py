"""What the classifier does on queries of sources it has not seen, against the rules and against the bars.

**What is pooled.** Most sources have one label, and a macro-F1 inside such a source says nothing. So every source's
queries are judged with that source left out (:mod:`finetune.classifier.leaving`), the judgements of all sources are put
together, and the macro-F1 is that of the three routes over all labelled queries. It is a hard measure: a source's kind
of question often has no like elsewhere.

**What is judged of given weights.** Weights that have seen all sources cannot judge left-out ones. Judged is their
recipe, which is in their ``config.json``: it is followed again with each source left out, on the data of the settings.
``reproduced`` says for how many queries the recipe's model on everything decides as the given weights do. The held-out
files, time and size are of the weights themselves.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from finetune import data
from finetune.classifier.examples import ClassifierInputs, Example, given, written
from finetune.classifier.fitting import Features, fit, judged
from finetune.classifier.leaving import LeftOut, leave_out
from finetune.classifier.settings import ClassifierSettings
from finetune.judging import Judgement, Measure
from finetune.training import say
from models.classifier import Judged, NgramClassifier, describe
from serving.answer.routing import classify
from serving.answer.types import Route
from serving.evaluation.calibration import error_statistic
from serving.evaluation.estimates import Indices, Statistic
from serving.evaluation.routing import Routed, macro_f1_statistic

LABELS = tuple(route.value for route in Route)
DECIDES = "macro-F1 on left-out sources"
_TIMED = 2_000
_MEGABYTE = 1_000_000

RECIPE = ("seed", "epochs", "grams", "strength", "invented_names", "made_questions", "leak", "agentic_above")
"""The settings that, with the data, make the weights."""


@dataclass(frozen=True, slots=True)
class Learning:
    """The examples, the real ones first, and a row of features for each."""

    examples: Sequence[Example]
    features: Features

    @classmethod
    def of(cls, settings: ClassifierSettings, inputs: ClassifierInputs) -> Learning:
        real = given(inputs.routes)
        examples = [*real, *written(settings, real, [row for one in inputs.topics for row in one.rows], inputs.names)]
        grams = settings.grams.grams()
        say(f"{len(examples)} queries, of which {len(real)} are given")
        found = Features.of([one.text for one in examples], grams, lambda done: say(f"{done} queries read"))
        return cls(examples, found)

    @property
    def real(self) -> Sequence[Example]:
        return [one for one in self.examples if not one.made]

    def left_out(self, settings: ClassifierSettings) -> LeftOut:
        began = time.monotonic()

        def progress(source: str, right: float) -> None:
            say(f"without {source}: {right:.1%} of it routed right, {time.monotonic() - began:.0f} s")

        return leave_out(self.features, self.examples, settings, progress=progress)


def recipe_of(settings: ClassifierSettings) -> dict[str, Any]:
    return settings.model_dump(mode="json", include=set(RECIPE))


def judge(settings: ClassifierSettings, weights: Path | None, base: Path) -> Judgement:
    """Judges weights; without any, the rules, which are served when there are none.

    ``base`` is read for ``compare_base`` alone.
    """
    inputs = ClassifierInputs(settings)
    held = given(data.routes(settings.held_out, settings.data_root, held_out=True))
    if weights is None:
        return _judged_rules(given(inputs.routes), held)
    followed = settings.model_copy(
        update={
            name: getattr(ClassifierSettings.model_validate({"data": {}, **describe(weights)["recipe"]}), name)
            for name in RECIPE
        }
    )
    learning = Learning.of(followed, inputs)
    left_out = learning.left_out(followed)
    classifier = NgramClassifier(weights)
    reported = {
        **_reported(learning.real, left_out.decisions),
        "reproduced": _reproduced(learning, left_out, followed, classifier),
        "thresholds": {"search": classifier.search.threshold, "agentic": classifier.agentic.threshold},
        "held_out": _held_out(held, [classifier.judge(one.text) for one in held]),
    }
    if settings.compare_base:
        reported["base_head"] = _compared(learning, followed, base)
    measures = _measures(learning.real, left_out.decisions)
    return Judgement([*measures, *_costs(classifier, weights, [one.text for one in learning.real])], DECIDES, reported)


def _compared(learning: Learning, settings: ClassifierSettings, base: Path) -> dict[str, Any]:
    from finetune.classifier.comparing import left_out_of_base  # noqa: PLC0415 (loads sentence-transformers)

    found, milliseconds = left_out_of_base(learning.real, settings, base)
    size = sum(path.stat().st_size for path in base.rglob("*.safetensors")) / _MEGABYTE
    return {
        "measured": [measure.bar() for measure in _measures(learning.real, found.decisions)],
        "p50 ms a query": round(milliseconds, 3),
        "megabytes": round(size, 1),
        **_reported(learning.real, found.decisions),
    }


def _judged_rules(real: Sequence[Example], held: Sequence[Example]) -> Judgement:
    decisions = [_by_rule(one.text) for one in real]
    measures = [one for one in _measures(real, decisions) if not one.name.startswith("ECE")]
    return Judgement(
        measures,
        DECIDES,
        {**_reported(real, decisions), "held_out": _held_out(held, [_by_rule(one.text) for one in held])},
    )


def _by_rule(text: str) -> Judged:
    route = classify(text).route
    return Judged(route, 1.0, float(route is Route.SEARCH), float(route is Route.AGENTIC))


def _measures(real: Sequence[Example], decisions: Sequence[Judged]) -> list[Measure]:
    labelled = [(one, found) for one, found in zip(real, decisions, strict=True) if one.labelled]
    clear = [(one, found) for one, found in zip(real, decisions, strict=True) if one.clear is not None]
    asked = [(one, found) for one, found in zip(real, decisions, strict=True) if one.route is not Route.SEARCH]
    routed = [Routed(one.route.value, found.route.value) for one, found in labelled]
    right = [one.route is found.route for one, found in labelled]
    return [
        Measure(DECIDES, _ids(labelled), macro_f1_statistic(routed, LABELS), target=0.90),
        Measure("agreement with the rules on clear cases", _ids(clear),
                _mean([one.clear is found.route for one, found in clear]), target=0.97),
        Measure("questions sent to search", _ids(asked),
                _mean([found.route is Route.SEARCH for _, found in asked]), target=0.005, at_most=True),
        Measure("ECE", _ids(labelled), error_statistic([found.probability for _, found in labelled], right),
                target=0.03, at_most=True),
    ]  # fmt: skip


def _ids(cases: Sequence[tuple[Example, Judged]]) -> tuple[str, ...]:
    return tuple(f"{one.source}/{one.id}" for one, _ in cases)


def _mean(values: Sequence[bool]) -> Statistic:
    numbers = np.array(values, dtype=np.float64)

    def mean(rows: Indices) -> float:
        return float(numbers[rows].mean())

    return mean


def _costs(classifier: NgramClassifier, weights: Path, texts: Sequence[str]) -> list[Measure]:
    """Milliseconds a query, one at a time on one thread, and the folder's megabytes."""
    some = texts[:: max(1, len(texts) // _TIMED)]
    spent: list[float] = []
    for text in some:
        began = time.perf_counter()
        classifier.judge(text)
        spent.append((time.perf_counter() - began) * 1e3)
    numbers = np.array(spent)
    size = sum(path.stat().st_size for path in weights.rglob("*") if path.is_file()) / _MEGABYTE

    def median(rows: Indices) -> float:
        return float(np.median(numbers[rows]))

    cases = tuple(str(number) for number in range(len(some)))
    return [
        Measure("p50 ms a query", cases, median, target=1.0, at_most=True),
        Measure("megabytes", ("folder",), lambda _: size, target=4.0, at_most=True),
    ]


def _reported(real: Sequence[Example], decisions: Sequence[Judged]) -> dict[str, Any]:
    """A line a source: what its queries are, and what they were taken for."""
    sources: dict[str, dict[str, Any]] = {}
    for source in sorted({one.source for one in real}):
        own = [(one, found) for one, found in zip(real, decisions, strict=True) if one.source == source]
        sources[source] = {
            "n": len(own),
            "labelled": own[0][0].labelled,
            "expected": _counts(one.route for one, _ in own),
            "chosen": _counts(found.route for _, found in own),
            "right": round(float(np.mean([one.route is found.route for one, found in own])), 4),
        }
    return {"sources": sources}


def _counts(routes: Any) -> dict[str, int]:
    return {route.value: count for route, count in sorted(Counter(routes).items())}


def _held_out(held: Sequence[Example], decisions: Sequence[Judged]) -> Mapping[str, Any]:
    return _reported(held, decisions)["sources"] if held else {}


def _reproduced(
    learning: Learning, left_out: LeftOut, settings: ClassifierSettings, classifier: NgramClassifier
) -> float:
    """The share of the real queries that the recipe's model routes as the weights do."""
    model = fit(learning.features, learning.examples, settings)
    rows = range(len(left_out.decisions))
    ours = judged(model.scores(learning.features[np.array(rows)]), left_out.heads)
    same = [
        found.route is classifier.judge(learning.examples[row].text).route
        for row, found in zip(rows, ours, strict=True)
    ]
    return round(float(np.mean(same)), 4)
