"""ALCE's rule on claims as the product parses them, without the original's quirks.

What differs from the legacy mode: markers are read by our own grammar and belong to the sentence that they follow;
repeated citations count once; citations beyond the limit, and those that name no passage, stand in the precision's
denominator without credit; a citation that names no passage voids its claim's recall; declines and searches are counted
apart instead of scoring 0; an answer that cites nothing has no precision rather than a precision of 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving.answer import citations
from serving.answer.prompt import premise
from serving.answer.statements import Block
from serving.answer.types import Claim, Outcome, Passage
from serving.answer.wire import Answer, PassageOut
from serving.evaluation import alce
from serving.evaluation.alce import AT_MOST, Credit
from serving.evaluation.estimates import Estimate, NotApplicable, Score, mean
from serving.evaluation.judgements import Entails, Pair


@dataclass(frozen=True, slots=True)
class Cited:
    """A claim, the 0-based passages it cites, ascending and without repeats, and how many citations name none."""

    text: str
    chunks: tuple[int, ...]
    fabricated: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """What is scored of one answer. ``premises`` are its passages as a grader reads them, in chunk order."""

    outcome: Outcome
    claims: tuple[Cited, ...]
    premises: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """One answer's citation recall and precision in [0, 1], and how each of its claims did."""

    recall: Score
    precision: Score
    claims: tuple[Credit, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the answers that have a recall, or a precision; the others are counted in each estimate."""

    recall: Estimate
    precision: Estimate


def read(answer: Answer) -> Reading:
    """Our own Answer, claims as it gives them."""
    known = len(answer.passages)
    claims = [
        _cited(claim.text, [citation.chunk for citation in claim.citations], fabricated=0, passages=known)
        for claim in answer.claims
    ]
    return Reading(answer.outcome, tuple(claims), tuple(premise(_passage(passage)) for passage in answer.passages))


def read_reply(reply: str, passages: Sequence[Passage]) -> Reading:
    """A reply of any system that writes ``[n]`` markers, parsed as ours are. Headings and code are no claims."""
    statements = [
        statement
        for statement in citations.parse(reply, len(passages)).statements
        if statement.kind not in {Block.HEADING, Block.CODE}
    ]
    claims = [
        _cited(_in_context(each.claim, each.context), each.claim.chunks, len(each.claim.fabricated), len(passages))
        for each in statements
    ]
    return Reading(Outcome.ANSWERED, tuple(claims), tuple(map(premise, passages)))


def score(reading: Reading, entails: Entails, *, at_most: int = AT_MOST) -> AnswerScore:
    if reading.outcome is not Outcome.ANSWERED:
        declined = reading.outcome is Outcome.DECLINED
        reason = NotApplicable.DECLINED if declined else NotApplicable.SEARCH
        return AnswerScore(reason, reason)
    if not reading.claims:
        return AnswerScore(NotApplicable.NO_STATEMENTS, NotApplicable.NO_STATEMENTS)
    judged = tuple(_judge(claim, reading.premises, entails, at_most) for claim in reading.claims)
    cited = sum(credit.counted for credit in judged)
    return AnswerScore(
        recall=sum(credit.supported for credit in judged) / len(judged),
        precision=sum(credit.credited for credit in judged) / cited if cited else NotApplicable.NO_CITATIONS,
        claims=judged,
    )


def pairs(reading: Reading, *, at_most: int = AT_MOST) -> Iterator[Pair]:
    """Every judgement that :func:`score` may ask for, with repeats."""
    for claim in reading.claims:
        if not claim.fabricated:
            yield from alce.pairs(claim.text, claim.chunks[:at_most], reading.premises)


def summarise(scores: Sequence[AnswerScore], rng: np.random.Generator) -> Summary:
    return Summary(
        recall=mean([score.recall for score in scores], rng),
        precision=mean([score.precision for score in scores], rng),
    )


def recalls(scores: Mapping[str, AnswerScore]) -> dict[str, Score]:
    """By case, for :func:`serving.evaluation.estimates.compare`."""
    return {case: score.recall for case, score in scores.items()}


def precisions(scores: Mapping[str, AnswerScore]) -> dict[str, Score]:
    return {case: score.precision for case, score in scores.items()}


def _judge(claim: Cited, premises: Sequence[str], entails: Entails, at_most: int) -> Credit:
    counted = len(claim.chunks) + claim.fabricated
    if claim.fabricated:
        return Credit(supported=False, credited=0, counted=counted)
    within = alce.judge(claim.text, claim.chunks[:at_most], premises, entails)
    return Credit(within.supported, within.credited, counted, within.overcited)


def _cited(text: str, chunks: Sequence[int], fabricated: int, passages: int) -> Cited:
    known = sorted({chunk for chunk in chunks if 0 <= chunk < passages})
    return Cited(text, tuple(known), fabricated + len(set(chunks)) - len(known))


def _in_context(claim: Claim, header: str) -> str:
    return "\n".join(part for part in (header, claim.context, claim.text) if part)


def _passage(passage: PassageOut) -> Passage:
    return Passage(id=passage.id, text=passage.text, title=passage.title, heading_path=passage.heading_path)
