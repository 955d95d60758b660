"""Deterministic guards: cheap checks that may only reject a claim, never pass one.

Models that judge entailment overlook a swapped number, an invented name or a lost "not". Each guard looks at exactly
one of these, in the claim and in the evidence, and gives the reason it rejects for.
"""

from __future__ import annotations

import re

from serving.answer.text import identifiers, normalise, numbers
from serving.answer.types import Reason

_NEGATION = re.compile(r"\b(?:not|no|never|none|neither|nor|cannot|without|\w+n['’]t)\b")
_CLAUSE = re.compile(r"[.!?;\n]+\s")


def reject(claim: str, evidence: str) -> Reason | None:
    """The reason for which the evidence cannot entail the claim, or None when no guard objects."""
    if not numbers(claim) <= numbers(evidence):
        return Reason.NUMBER_MISMATCH
    if not _names_found(claim, evidence):
        return Reason.NAME_MISMATCH
    if _negation_lost(claim, evidence):
        return Reason.NEGATION_MISMATCH
    return None


def _names_found(claim: str, evidence: str) -> bool:
    """Every identifier of the claim stands in the evidence, whole; a dotted one may stand there by its parts."""
    names = identifiers(claim)
    return all(
        name in evidence or all(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", evidence) for part in name.split("."))
        for name in names
    )


def _negation_lost(claim: str, evidence: str) -> bool:
    """A claim that negates needs evidence that negates somewhere; the reverse needs a reader of sentences."""
    return bool(_NEGATION.search(normalise(claim))) and not _NEGATION.search(normalise(evidence))
