"""The jobs by name: what each reads, and what it does with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finetune.citation import job as citation
from finetune.citation.settings import CitationSettings
from finetune.classifier import job as classifier
from finetune.classifier.examples import ClassifierInputs
from finetune.classifier.judging import judge as judge_classifier
from finetune.classifier.settings import ClassifierSettings
from finetune.judging import Judgement
from finetune.run import Run
from finetune.settings import JobSettings


@dataclass(frozen=True, slots=True)
class Job:
    """``read`` gives the inputs, ``preview`` says what would be made of them, ``train`` saves the run's weights.

    ``judge(settings, weights, base)`` measures weights on held-out cases; without weights (None), what is served when
    there are none.
    """

    settings: type[JobSettings]
    read: Callable[[Any], Any]
    preview: Callable[[Any, Any], str]
    train: Callable[[Run, Any, Any, Path], None]
    judge: Callable[[Any, Path | None, Path], Judgement] | None = None


JOBS: Mapping[str, Job] = {
    "classifier": Job(ClassifierSettings, ClassifierInputs, classifier.preview, classifier.train, judge_classifier),
    "citation": Job(CitationSettings, citation.CitationInputs, citation.preview, citation.train),
}
