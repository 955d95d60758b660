"""The facts of a claim: ``X was built in 1889 and is 330 m tall`` states two, and is proven when both are.

Splits only where each half can be read alone: two whole clauses, or two verbs of one subject. Anything doubtful (a
condition, reported speech, a relative clause, a quotation) stays whole.
"""

from __future__ import annotations

import re

MOST = 4
_AUXILIARY = r"(?:is|are|was|were|has|have|had|can|could|will|would|may|might|must|does|did)"
_FIRST_AUXILIARY = re.compile(rf"\b{_AUXILIARY}\b")
_VERB_HALF = re.compile(rf"(?:,? and|,) (?={_AUXILIARY}\b)")
_CLAUSE_HALF = re.compile(rf"(?:,? and|;|, while|, but) (?=(?:[^\W\d]\w*['’]?\w* ){{1,5}}{_AUXILIARY}\b)")
_BINDS = re.compile(
    r"\b(?:if|unless|whether|that|because|since|when|where|who|whom|whose|which|either|neither|between|both|not|than)\b"
    r"|[\"“”„«»`()\[\]|]",
    re.IGNORECASE,
)
_TERMINATORS = ".!?"
_LONGEST = 1000
_FEWEST_WORDS = 3
_SUBJECT_WORDS = 12


def facts(claim: str) -> tuple[str, ...]:
    """The facts of a claim, each a sentence of its own; the claim itself alone when it cannot be split safely."""
    if len(claim) > _LONGEST or _BINDS.search(claim):
        return (claim,)
    body = claim.rstrip().rstrip(_TERMINATORS)
    end = claim.rstrip()[len(body) :]
    found = _split(body, MOST)
    return tuple(f"{part}{end}" for part in found) if len(found) > 1 else (claim,)


def _split(body: str, most: int) -> list[str]:
    if most < 2:
        return [body]
    verb = _FIRST_AUXILIARY.search(body)
    if verb is None:
        return [body]
    subject = body[: verb.start()].strip()
    for pattern, shares_subject in ((_VERB_HALF, True), (_CLAUSE_HALF, False)):
        cut = pattern.search(body, verb.end())
        if cut is None:
            continue
        left, right = body[: cut.start()], body[cut.end() :]
        if shares_subject:
            if not subject or "," in subject or len(subject.split()) > _SUBJECT_WORDS:
                continue
            right = f"{subject} {right}"
        if min(len(left.split()), len(right.split())) < _FEWEST_WORDS:
            continue
        return [left, *_split(right, most - 1)]
    return [body]
