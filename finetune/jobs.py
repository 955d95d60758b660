"""The jobs by name: what each reads, and what it does with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finetune.citation import job as citation
from finetune.citation.judging import judge as judge_citation
from finetune.citation.settings import CitationSettings
from finetune.classifier import job as classifier
from finetune.classifier.examples import ClassifierInputs
from finetune.classifier.judging import judge as judge_classifier
from finetune.classifier.settings import ClassifierSettings
from finetune.judging import Judgement
from finetune.pairs import job as pairs
from finetune.pairs import judge as pairs_judge
from finetune.pairs.settings import PairSettings
from finetune.run import Run
from finetune.settings import JobSettings


@dataclass(frozen=True, slots=True)
class Job:
    """``read`` gives the inputs, ``preview`` says what would be made of them, ``train`` saves the run's weights.

    ``judge(settings, weights, base)`` measures weights on held-out cases; without weights (None), what is served when
    there are none. ``purpose`` says in a sentence or two what the weights are for.
    """

    purpose: str
    settings: type[JobSettings]
    read: Callable[[Any], Any]
    preview: Callable[[Any, Any], str]
    train: Callable[[Run, Any, Any, Path], None]
    judge: Callable[[Any, Path | None, Path], Judgement]
    shared: bool = False


def _pairs(purpose: str) -> Job:
    return Job(purpose, PairSettings, pairs.PairInputs, pairs.preview, pairs.train, pairs_judge.judge)


JOBS: Mapping[str, Job] = {
    "citation": Job(
        "A LoRA adapter with which a small causal model answers from numbered passages alone, one claim a sentence, "
        "each with the number of the passage that states it, and declines in the agreed form when they do not answer.",
        CitationSettings,
        citation.CitationInputs,
        citation.preview,
        citation.train,
        judge_citation,
        shared=True,
    ),
    "encoder": _pairs(
        "The verifier, the reranker and the relevance judge of the CPU default: three heads over one encoder."
    ),
    "relevance": _pairs("A judge of whether a sentence answers a question, at least in part."),
    "reranker": _pairs("A cross-encoder that scores how well a passage answers a query."),
    "verifier": _pairs("A grounding checker: whether a document entails a claim."),
    "classifier": Job(
        "Chooses the route of a query before any model runs: a linear model over hashed n-grams.",
        ClassifierSettings,
        ClassifierInputs,
        classifier.preview,
        classifier.train,
        judge_classifier,
    ),
}
