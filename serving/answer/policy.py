"""What of the engine is a choice: sizes, thresholds, policies. Read from settings, not hard-coded where it is used."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class GrammarMode(StrEnum):
    """What the synthesizer is allowed to write."""

    QUOTES = "quotes"
    """Sentences of the passages, each with its passage's marker. The model chooses what answers; it cannot reword."""
    MARKERS = "markers"
    """Any sentences, each ending in a marker that exists."""
    STRUCTURED = "structured"
    """An object that says whether the passages answer, which ones do, and what: each sentence cites all of them."""
    FREE = "free"
    """Anything; the parser and the verifier alone decide."""


class OnFabrication(StrEnum):
    """What a citation of a passage that was not given leads to."""

    REFUSE = "refuse"
    DROP = "drop"


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]


class Policy(BaseModel):
    """Sizes in passages, sentences and tokens; shares and scores in [0, 1]. Unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_question_chars: Count = 2_000
    search_results: Count = 10
    """Passages that the ``search`` route returns."""
    candidates: Count = 40
    """Passages that are retrieved and reranked."""
    retrieval_weight: Share = 0.0
    """How much of a passage's score its retrieval score decides, beside the reranker's: above 0 for a reranker that is
    weaker than retrieval where names are concerned, such as the cosine of sentence embeddings."""
    score_floor: Share = 0.0
    """Passages that the reranker scores lower are noise and are left out before composing."""
    context_passages: Count = 8
    """Passages that the model is given, at most."""
    agentic_passages: Count = 12
    """The same for a question that was routed ``agentic``."""
    window_tokens: Count = 4_096
    """The model's window: prompt and reply."""
    window_fraction: Share = 0.6
    """The share of the window that passages may fill."""
    per_source: Count = 6
    """Passages of one source, at most."""
    half_life_days: Annotated[float, Field(gt=0.0)] = 180.0
    """Age at which a passage's recency is worth half, for questions that depend on time."""
    recency_weight: Share = 0.3
    """How much of a score recency decides, for those questions."""
    grammar: GrammarMode = GrammarMode.QUOTES
    max_quotes: Count = 64
    """Sentences of the passages that are looked at for a ``quotes`` reply."""
    max_choices: Annotated[int, Field(ge=1, le=12)] = 4
    """Those that such a reply may choose from: the ones that bear on the question, best first."""
    lead_weight: Share = 0.15
    """What it adds to a sentence's score that it leads its passage: the first one says what it is about."""
    max_sentences: Annotated[int, Field(ge=1, le=5)] = 2
    """Sentences in a reply, under a grammar."""
    max_reply_tokens: Count = 256
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 0.0
    confidence_floor: Share = 0.5
    """The least score that a claim's best citation must reach."""
    on_fabrication: OnFabrication = OnFabrication.REFUSE

    @property
    def context_tokens(self) -> int:
        """Tokens the passages may take of the window."""
        return int(self.window_tokens * self.window_fraction)
