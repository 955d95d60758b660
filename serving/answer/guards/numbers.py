"""Numbers and units: each quantity of a claim must stand in the evidence in an equal form, with the same unit.

Equal forms: ``1,000`` and ``1000``, ``half`` and ``50%``, ``five decades`` and ``50 years``, ``1.5 million`` and
``1,512,000``. A claim that gives a range or a bound is told by any value inside it; one that gives a plain number by
that number only. A count that the evidence spells out (``A, B and C`` for "three") or leaves to be reckoned from two of
its years is left to the verifier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from serving.answer.guards.dates import dates
from serving.answer.guards.measures import UNITS, Unit, compatible
from serving.answer.guards.numerals import COUNTING, EVIDENCE_ORDINALS
from serving.answer.guards.quantities import HEDGE, Quantity, quantities
from serving.answer.guards.reading import Kind, Reading, Sentence, Token
from serving.answer.guards.rejection import Rejection
from serving.answer.types import Reason

CONVERSION = 0.015
LARGEST_COUNT = 12
_ITEM_TOKENS = 8


def number_guard(claim: Reading, evidence: Reading) -> Rejection | None:
    """Rejects a claim with a number that the evidence does not give, or gives with another unit."""
    wanted = _undated(claim)
    if not wanted:
        return None
    given = quantities(evidence.tokens)
    plain = {(other.low, other.high, other.unit, other.code) for other in given}
    implied = _implied(evidence.tokens)
    for quantity in wanted:
        if (quantity.low, quantity.high, quantity.unit, quantity.code) in plain:
            continue
        if quantity.code and _name_is_judged_elsewhere(quantity.code, evidence):
            continue
        equal = [other for other in given if _equal(quantity, other)]
        rivals = [other for other in equal if _rival_unit(quantity, other)]
        if any(_same_unit(quantity, other) for other in equal if other.unit is not None or not rivals):
            continue
        if equal:
            return Rejection(Reason.UNIT_MISMATCH, (quantity.text, (rivals or equal)[0].text))
        if quantity.unit is None and quantity.value in implied:
            continue
        if not _left_to_be_reckoned(quantity, evidence):
            return Rejection(Reason.NUMBER_MISMATCH, (quantity.text, *_nearest(quantity, given)))
    return None


def _undated(claim: Reading) -> list[Quantity]:
    """The claim's quantities outside of its dates. ``one`` is a pronoun as often as a number."""
    dated = {at for date in dates(claim.tokens) for at in range(date.start, date.end)}
    alone = {token.sentence for token in claim.tokens} - {t.sentence for t in claim.tokens if t.kind is Kind.WORD}
    return [
        quantity
        for quantity in quantities(claim.tokens)
        if quantity.start not in dated
        and claim.tokens[quantity.start].sentence not in alone  # the "1." of a list
        and not (quantity.text.casefold() == "one" and quantity.unit is None)
    ]


def _name_is_judged_elsewhere(code: str, evidence: Reading) -> bool:
    """A number in a name (``U-30``) stands there as ``U 30`` too; where the name itself is missing, names object."""
    word, dash, number = code.partition("-")
    if not dash:
        return False
    beside = pairwise(evidence.tokens)
    return word not in evidence.folded or any(one.folded == word and two.folded == number for one, two in beside)


def _equal(wanted: Quantity, other: Quantity) -> bool:
    if wanted.code or other.code:
        return wanted.code == other.code
    if wanted.is_range:
        finite = [value for value in (other.low, other.high, *other.others) if math.isfinite(value)]
        return any(_inside(value, wanted, other) for value in finite)
    values = (other.low, other.high, *other.others)
    return any(_close(one, value, wanted, other) for one in (wanted.value, *wanted.others) for value in values)


def _inside(value: float, wanted: Quantity, other: Quantity) -> bool:
    """Whether a value lies in the range that is told; one of another kind counts only at its very limit."""
    if wanted.unit != other.unit and (other.unit is None or wanted.unit is None or not _comparable(wanted, other)):
        return value in (wanted.low, wanted.high)
    value *= _factor(other.unit, wanted.unit)
    return wanted.low - 1e-9 <= value <= wanted.high + 1e-9


def _comparable(wanted: Quantity, other: Quantity) -> bool:
    return wanted.unit is not None and other.unit is not None and wanted.unit.dimension == other.unit.dimension


def _close(one: float, value: float, wanted: Quantity, other: Quantity) -> bool:
    if not math.isfinite(one) or not math.isfinite(value):
        return False
    factor = _factor(other.unit, wanted.unit)
    if math.isclose(one, value, rel_tol=1e-9) or (
        factor != 1 and math.isclose(one, value * factor, rel_tol=CONVERSION)
    ):
        return True
    percent = UNITS["%"]
    if wanted.unit == percent and other.unit is None and 0 < value < 1:
        return math.isclose(one, 100 * value, rel_tol=CONVERSION)
    if other.unit == percent and wanted.unit is None and 0 < one < 1:
        return math.isclose(100 * one, value, rel_tol=CONVERSION)
    value *= factor
    if wanted.hedged or other.hedged:
        return math.isclose(one, value, rel_tol=HEDGE)
    return wanted.scaled and one != 0 and _rounded(value, one)


def _rounded(value: float, to: float) -> bool:
    """Whether ``value`` rounds to ``to`` at the precision in which ``to`` is written: 1,512,345 to 1.5 million."""
    digits = len(f"{to:.6g}".split("e")[0].replace(".", "").rstrip("0")) or 1
    return float(f"{value:.{digits}g}") == to


def _factor(source: Unit | None, target: Unit | None) -> float:
    if source is None or target is None or source.dimension != target.dimension:
        return 1.0
    return source.size / target.size


def _same_unit(wanted: Quantity, other: Quantity) -> bool:
    """A number without a unit contradicts none; two units of one dimension do so unless the values were converted."""
    if wanted.unit is None or other.unit is None or compatible(wanted.unit, other.unit):
        return True
    if wanted.unit.dimension != other.unit.dimension:
        return False
    factor = _factor(other.unit, wanted.unit)
    if wanted.is_range:
        return True
    return any(
        math.isclose(wanted.value, value * factor, rel_tol=HEDGE if wanted.hedged else CONVERSION)
        for value in (other.low, other.high)
        if math.isfinite(value)
    )


def _rival_unit(wanted: Quantity, other: Quantity) -> bool:
    """Whether the evidence gives the number with another unit of the same kind: a bare one beside it is no help."""
    if wanted.unit is None or other.unit is None or _same_unit(wanted, other):
        return False
    kinds = {wanted.unit.dimension, other.unit.dimension}
    return len(kinds) == 1 or kinds == {"time", "months"}


def _implied(tokens: Sequence[Token]) -> frozenset[float]:
    """The numbers that words of the evidence imply: ``both``, ``twice``, ``the second``."""
    words = {token.folded for token in tokens}
    return frozenset(float(value) for word, value in (COUNTING | EVIDENCE_ORDINALS).items() if word in words)


def _left_to_be_reckoned(quantity: Quantity, evidence: Reading) -> bool:
    value = quantity.value
    if quantity.unit is not None and quantity.unit.name in ("year", "decade", "century"):
        years = value * quantity.unit.size / UNITS["year"].size
        return any(years in _year_differences(sentence) for sentence in evidence.sentences)
    if quantity.unit is not None or quantity.is_range or not 2 <= value <= LARGEST_COUNT:
        return False
    return any(value in _list_lengths(sentence) for sentence in evidence.sentences)


def _year_differences(sentence: Sentence) -> set[float]:
    years = sorted({date.first for date in dates(sentence.tokens) if date.first and not date.is_period})[:8]
    return {float(abs(two - one) + inclusive) for one in years for two in years for inclusive in (0, 1) if one != two}


def _list_lengths(sentence: Sentence) -> Iterator[float]:
    """How many items each run of ``a, b and c`` has."""
    length, last = 1, -_ITEM_TOKENS - 1
    for at, token in enumerate(sentence.tokens):
        if token.folded not in (",", ";", "and", "or", "&"):
            continue
        if at == last + 1:  # ", and" separates once
            last = at
            continue
        if at - last > _ITEM_TOKENS:
            if length > 1:
                yield float(length)
            length = 1
        length += 1
        last = at
    if length > 1:
        yield float(length)


def _nearest(quantity: Quantity, given: Sequence[Quantity]) -> tuple[str, ...]:
    """The evidence's number that looks most like a slip of this one, for people to read."""
    rivals = [other for other in given if not other.code and other.unit == quantity.unit and math.isfinite(other.value)]
    if quantity.code or not rivals:
        return ()
    return (min(rivals, key=lambda other: abs(other.value - quantity.value)).text,)
