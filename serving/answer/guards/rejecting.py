"""Deterministic guards: cheap checks that may only reject a claim, never pass one, and say which words decided.

Models that judge entailment overlook a swapped number, an invented name or a lost "not". Each guard looks at exactly
one of these, in the claim and in the evidence; what it cannot tell it leaves to the verifier. All run in linear time on
any text. They know English; of other languages they judge digits, identifiers and quoted strings.
"""

from __future__ import annotations

from collections.abc import Callable

from serving.answer.guards.comparatives import comparative_guard
from serving.answer.guards.dates import date_guard
from serving.answer.guards.names import name_guard
from serving.answer.guards.numbers import number_guard
from serving.answer.guards.polarity import polarity_guard
from serving.answer.guards.quantifiers import quantifier_guard
from serving.answer.guards.reading import Reading
from serving.answer.guards.rejection import Rejection
from serving.answer.guards.roles import role_guard

LONGEST_CLAIM = 2000

Guard = Callable[[Reading, Reading], Rejection | None]

GUARDS: dict[str, Guard] = {
    "numbers": number_guard,
    "dates": date_guard,
    "names": name_guard,
    "polarity": polarity_guard,
    "quantifiers": quantifier_guard,
    "comparatives": comparative_guard,
    "roles": role_guard,
}
"""Each guard by its name, in the order they are asked. ``numbers`` judges units too."""

__all__ = ["GUARDS", "LONGEST_CLAIM", "Guard", "Reading", "Rejection", "reject"]


def reject(claim: str | Reading, evidence: str | Reading) -> Rejection | None:
    """The first objection to the evidence entailing the claim, or None when no guard objects.

    Pass a :class:`Reading` for evidence that several claims are judged against, and it is read once. Of a claim longer
    than :data:`LONGEST_CLAIM` characters the beginning is judged: no sentence is that long, and time stays linear.
    """
    read_claim = Reading(claim[:LONGEST_CLAIM]) if isinstance(claim, str) else claim
    read_evidence = Reading(evidence) if isinstance(evidence, str) else evidence
    return next(
        (rejection for guard in GUARDS.values() if (rejection := guard(read_claim, read_evidence)) is not None), None
    )
