"""Scores a log of answers: what was answered, declined and dropped, how sure and how fast. No reference is needed.

Where questions were kept and the passages' texts are at hand, a grader can judge the claims as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from serving.answer.logged import Logged
from serving.answer.types import Outcome
from serving.evaluation import alce_strict
from serving.evaluation.alce_strict import Cited, Reading
from serving.evaluation.estimates import NotApplicable, Score
from serving.evaluation.findings import Family, Findings, averages, latencies
from serving.evaluation.judgements import Entails, Pair
from serving.evaluation.report import Case

FAMILIES: Mapping[str, Family] = {
    "answered": "abstention",
    "refused": "abstention",
    "verified": "verification",
    "weakest_citation": "verification",
    "claims_kept": "verification",
    "citation_recall": "alce",
    "citation_precision": "alce",
}

Texts = Mapping[str, str]
"""Passages as a grader reads them, by the hash of their text."""


def pairs(lines: Sequence[Logged], texts: Texts) -> Iterator[Pair]:
    for line in lines:
        if (reading := _reading(line, texts)) is not None:
            yield from alce_strict.pairs(reading)


def score(lines: Sequence[Logged], texts: Texts, entails: Entails | None, rng: np.random.Generator) -> Findings:
    """Searches were asked nothing of and count aside. An id that stands twice is numbered."""
    cases: list[Case] = []
    seen: dict[str, int] = {}
    for line in lines:
        seen[line.request_id] = seen.get(line.request_id, 0) + 1
        turn = seen[line.request_id]
        cases.append(_case(line, line.request_id if turn == 1 else f"{line.request_id}#{turn}", texts, entails))
    return Findings(
        metrics=tuple(averages(cases, FAMILIES, rng)),
        cases=tuple(cases),
        worst_by="weakest_citation",
        latency=latencies((case.id, line.timings_ms.model_dump()) for case, line in zip(cases, lines, strict=True)),
    )


def _case(line: Logged, name: str, texts: Texts, entails: Entails | None) -> Case:
    if line.outcome is Outcome.SEARCH:
        scores: dict[str, Score] = dict.fromkeys(("answered", "refused"), NotApplicable.SEARCH)
    else:
        scores = {"answered": float(line.outcome is Outcome.ANSWERED), "refused": float(line.cause is not None)}
    if line.outcome is Outcome.ANSWERED:
        dropped = sum(each.count for each in line.dropped)
        scores["verified"] = float(line.verified)
        scores["weakest_citation"] = min(max(c.score for c in claim.citations) for claim in line.claims)
        scores["claims_kept"] = len(line.claims) / (len(line.claims) + dropped)
        reading = _reading(line, texts)
        if entails is not None and reading is not None:
            graded = alce_strict.score(reading, entails)
            scores |= {"citation_recall": graded.recall, "citation_precision": graded.precision}
    return Case(
        id=name,
        scores=scores,
        question=line.question or f"(hashed: {line.question_sha256[:12]})",
        text=" ".join(claim.text or "(not kept)" for claim in line.claims),
        outcome=f"{line.outcome}: {line.decline}" if line.decline else line.outcome,
        timings_ms=line.timings_ms,
    )


def _reading(line: Logged, texts: Texts) -> Reading | None:
    """What a grader judges; None where the log or the index holds too little."""
    premises = [texts.get(passage.sha256) for passage in line.passages]
    claims = [(claim.text, tuple(sorted({c.chunk for c in claim.citations}))) for claim in line.claims]
    cited = {chunk for _, chunks in claims for chunk in chunks}
    if line.outcome is not Outcome.ANSWERED or any(premises[chunk] is None for chunk in cited):
        return None
    if any(text is None for text, _ in claims):
        return None
    return Reading(
        line.outcome,
        tuple(Cited(text or "", chunks) for text, chunks in claims),
        tuple(premise or "" for premise in premises),
    )
