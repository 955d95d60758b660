"""The jobs by name: what each reads, and what it does with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finetune.citation import job as citation
from finetune.citation.settings import CitationSettings
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
    there are none.
    """

    settings: type[JobSettings]
    read: Callable[[Any], Any]
    preview: Callable[[Any, Any], str]
    train: Callable[[Run, Any, Any, Path], None]
    judge: Callable[[Any, Path | None, Path], Judgement] | None = None


_PAIRS = Job(PairSettings, pairs.PairInputs, pairs.preview, pairs.train, pairs_judge.judge)

JOBS: Mapping[str, Job] = {
    "citation": Job(CitationSettings, citation.CitationInputs, citation.preview, citation.train),
    "encoder": _PAIRS,
    "relevance": _PAIRS,
    "reranker": _PAIRS,
    "verifier": _PAIRS,
}
