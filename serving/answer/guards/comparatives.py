"""Comparatives: higher is not lower, first is not last, and a bound on a number has a side."""

from __future__ import annotations

import math

from serving.answer.guards.negation import is_negation
from serving.answer.guards.opposites import COMPARATIVE
from serving.answer.guards.polarity import opposite
from serving.answer.guards.quantities import Quantity, quantities
from serving.answer.guards.reading import Reading
from serving.answer.guards.rejection import Rejection
from serving.answer.types import Reason


def comparative_guard(claim: Reading, evidence: Reading) -> Rejection | None:
    """Rejects a claim that compares the other way round than the evidence, or bounds a number from the other side."""
    for sentence in claim.sentences:
        opposed = opposite(sentence, evidence, COMPARATIVE)
        if opposed:
            return Rejection(Reason.COMPARATIVE_MISMATCH, opposed)
    if any(is_negation(token) for token in claim.tokens):  # "not more than 5" is "at most 5"
        return None
    bounds = [quantity for quantity in quantities(claim.tokens) if _side(quantity)]
    given = quantities(evidence.tokens) if bounds else []
    for bound in bounds:
        same = [other for other in given if _limit(other) == _limit(bound)]
        if same and all(_side(other) == -_side(bound) for other in same):
            return Rejection(Reason.COMPARATIVE_MISMATCH, (_written(bound), _written(same[0])))
    return None


def _side(quantity: Quantity) -> int:
    """1 for "at least", -1 for "at most", 0 for what is no bound."""
    if quantity.code:
        return 0
    return int(math.isinf(quantity.high)) - int(math.isinf(quantity.low))


def _limit(quantity: Quantity) -> float:
    return quantity.low if math.isfinite(quantity.low) else quantity.high


def _written(quantity: Quantity) -> str:
    return f"{'above' if _side(quantity) > 0 else 'below'} {quantity.text}"
