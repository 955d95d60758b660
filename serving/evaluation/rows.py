"""The rows of evaluation suites, typed: one model a format. A field that the format does not have is an error."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from serving.answer.types import Route
from serving.evaluation.alce import Document, Item

Text = Annotated[str, Field(min_length=1)]


class Format(StrEnum):
    """What a suite file holds: JSON Lines, or for ``asqa`` the JSON file of ALCE's own data. ``log`` is no suite, but
    logged answers.
    """

    QA = "qa"
    GROUNDING = "grounding"
    RERANK = "rerank"
    ROUTE = "route"
    ASQA = "asqa"
    LOG = "log"


class Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Identified(Row):
    id: Text


class Sentence(Row):
    text: str
    supporting: bool


class Reading(Row):
    """One reading of an ambiguous question, and its short answers."""

    question: str
    answers: tuple[str, ...]


class Turn(Row):
    role: str
    text: str


class QaPassage(Row):
    """``supporting``: the reference answer rests on it; None where the set does not say."""

    text: Text
    title: str = ""
    supporting: bool | None = None
    sentences: tuple[Sentence, ...] = ()


class QaRow(Identified):
    """A question over passages. ``answers`` are short strings or whole reference answers, as the set has them."""

    question: Text
    passages: tuple[QaPassage, ...]
    answers: tuple[str, ...]
    answerable: bool
    long_answer: str | None = None
    kind: str = ""
    qa_pairs: tuple[Reading, ...] = ()
    history: tuple[Turn, ...] = ()

    def readings(self) -> tuple[tuple[str, ...], ...]:
        """The short answers to look for, by reading: those of its readings, else its answers as one."""
        if self.qa_pairs:
            return tuple(reading.answers for reading in self.qa_pairs)
        return (self.answers,) if self.answers else ()


class AnswerabilityRow(QaRow):
    """A question of which it is known whether it can be answered: that alone, or a whole row of a ``qa`` suite."""

    id: str = ""
    passages: tuple[QaPassage, ...] = ()
    answers: tuple[str, ...] = ()


class GroundingRow(Identified):
    """Whether a document fully supports a claim (1) or not (0)."""

    document: Text
    claim: Text
    label: Literal[0, 1]
    question: str | None = None
    kind: str = ""


class RerankPassage(Row):
    text: Text
    relevance: Annotated[int, Field(ge=0)]
    title: str = ""


class RerankRow(Identified):
    query: Text
    passages: Annotated[tuple[RerankPassage, ...], Field(min_length=1)]

    def grades(self) -> dict[str, int]:
        """Relevance by place in the row, as :mod:`serving.evaluation.retrieval` reads it."""
        return {str(place): passage.relevance for place, passage in enumerate(self.passages)}


class RouteRow(Identified):
    """A query and the route it should take; None where nobody said."""

    query: Text
    route: Route | None
    kind: str = ""


class AlcePair(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    short_answers: tuple[str, ...]
    question: str = ""


class AlceDocument(BaseModel):
    """``sent``, where it stands, is the part of the text that the original judges."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str
    text: str
    sent: str | None = None


class AlceRow(BaseModel):
    """An item of ALCE's ASQA files, data or results. Its many other fields are left alone.

    Runs that draw several samples keep a list of outputs; the first counts.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: Text
    docs: tuple[AlceDocument, ...] = ()
    qa_pairs: tuple[AlcePair, ...] | None = None
    output: str | Annotated[tuple[str, ...], Field(min_length=1)] = ""
    sample_id: str = ""
    answer: str = ""

    def item(self) -> Item:
        """What the metrics read."""
        docs = tuple(Document(doc.title, doc.text if doc.sent is None else doc.sent) for doc in self.docs)
        answers = None if self.qa_pairs is None else tuple(pair.short_answers for pair in self.qa_pairs)
        output = self.output if isinstance(self.output, str) else self.output[0]
        return Item(self.question, output, docs, answers)
