"""The quantities of a text: values, the range each stands for, and the unit it is bound to. One pass over the tokens.

``"between 80% and 90%"``, ``"twenty-one"``, ``"1,000"``, ``"five decades"``, ``"$1.5 million"``, ``"about 330 m"``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from serving.answer.guards import numerals
from serving.answer.guards.digits import values_of
from serving.answer.guards.measures import ATTACHED_ONLY, CURRENCY_SIGNS, UNITS, Unit
from serving.answer.guards.reading import Kind, Token
from serving.answer.guards.spelled import spelled

LONGEST_NUMBER = 40
HEDGE = 0.05
_DIGITS = re.compile(r"[\d.,:/⁄ '’]+")
_DASHES = frozenset("-–—−")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as a text gives it: anything from ``low`` to ``high`` (equal for a plain number).

    ``text`` is as written. ``code`` is set for what only looks like a number (``3.11.4``, ``10:30``, ``4K``): it has no
    value and compares as written. ``scaled`` marks a rounded form such as ``1.5 million``, ``digits`` one written with
    digits. ``start`` and ``end`` number the tokens it takes, half-open; ``others`` are values it may mean as well.
    """

    text: str
    low: float
    high: float
    start: int
    end: int
    unit: Unit | None = None
    ordinal: bool = False
    scaled: bool = False
    digits: bool = False
    hedged: bool = False
    code: str = ""
    others: tuple[float, ...] = ()

    @property
    def value(self) -> float:
        return self.low

    @property
    def is_range(self) -> bool:
        return self.low != self.high


def quantities(tokens: Sequence[Token]) -> list[Quantity]:
    """All quantities among ``tokens``, in order. Ranges and bounds count as one."""
    found: list[Quantity] = []
    at = 0
    while at < len(tokens):
        quantity = _plain(tokens, at)
        if quantity is None:
            at += 1
            continue
        quantity = _bounded(tokens, _united(tokens, quantity), found)
        found.append(quantity)
        at = quantity.end
    return found


def _plain(tokens: Sequence[Token], at: int) -> Quantity | None:
    token = tokens[at]
    if token.kind is Kind.NUMBER:
        return _scaled(tokens, _from_digits(tokens, at))
    word = spelled(tokens, at) if token.kind is Kind.WORD else None
    if word is None:
        return None
    text = " ".join(one.text for one in tokens[at : word.end])
    return Quantity(text, word.value, word.value, at, word.end, ordinal=word.ordinal)


def _from_digits(tokens: Sequence[Token], at: int) -> Quantity:
    token = tokens[at]
    written = _DIGITS.match(token.folded)
    body = written[0] if written else ""
    suffix = token.folded[len(body) :]
    if _in_name(tokens, at):  # COVID-19, F-16, Uranium-235
        name = f"{tokens[at - 2].folded}-{token.folded}"
        return Quantity(name, math.nan, math.nan, at, at + 1, code=name, digits=True)
    values = values_of(body) if len(body) <= LONGEST_NUMBER else ()
    ordinal = suffix in numerals.ORDINAL_ENDINGS
    scale = numerals.SHORT_SCALES.get(suffix, 1.0)
    money = at > 0 and tokens[at - 1].text in CURRENCY_SIGNS
    if money and suffix in ("m", "b"):
        scale, suffix = (1e6, "") if suffix == "m" else (1e9, "")
    known = not suffix or ordinal or scale != 1.0 or suffix in UNITS or suffix in ("s", "x")
    if not values or not known:
        return Quantity(token.text, math.nan, math.nan, at, at + 1, code=token.folded, digits=True)
    sign = -1.0 if _negative(tokens, at) else 1.0
    first, *others = (sign * value * scale for value in values)
    unit = UNITS.get(suffix) if suffix and not ordinal and suffix != "s" else None
    return Quantity(
        token.text,
        first,
        first,
        at,
        at + 1,
        unit=unit,
        ordinal=ordinal,
        scaled=scale != 1.0,
        digits=True,
        others=tuple(others),
    )


def _in_name(tokens: Sequence[Token], at: int) -> bool:
    """Whether a hyphen and a capitalised word stand right before: the number is a part of a name."""
    if at < 2 or tokens[at - 1].text not in _DASHES or tokens[at - 2].kind is not Kind.WORD:
        return False
    unbroken = tokens[at - 2].end == tokens[at - 1].start and tokens[at - 1].end == tokens[at].start
    return unbroken and tokens[at - 2].text[0].isupper()


def _negative(tokens: Sequence[Token], at: int) -> bool:
    """A minus sign stands before its digits and after a blank: ``-5``, not ``3-5``."""
    if at == 0 or tokens[at - 1].text not in ("-", "−") or tokens[at - 1].end != tokens[at].start:
        return False
    return at == 1 or tokens[at - 2].end < tokens[at - 1].start or tokens[at - 2].text == "("


def _scaled(tokens: Sequence[Token], quantity: Quantity) -> Quantity:
    """Digits and a scale in words: ``1.5 million``, ``$5 m``, ``20 dozen``."""
    if quantity.code or quantity.ordinal or quantity.end >= len(tokens):
        return quantity
    following = tokens[quantity.end].folded
    scale = numerals.SCALES.get(following, numerals.SHORT_SCALES.get(following)) or numerals.GROUPS.get(following)
    money = quantity.start > 0 and tokens[quantity.start - 1].text in CURRENCY_SIGNS
    if scale is None and money:
        scale = {"m": 1e6, "b": 1e9}.get(following)
    if scale is None:
        return quantity
    value = quantity.low * scale
    return replace(
        quantity,
        text=f"{quantity.text} {following}",
        low=value,
        high=value,
        end=quantity.end + 1,
        scaled=True,
        others=(),
    )


def _united(tokens: Sequence[Token], quantity: Quantity) -> Quantity:
    """Binds the unit that follows (``5 km``, ``5-year-old``) or the sign before (``$5``)."""
    if quantity.code or quantity.unit or quantity.ordinal:
        return quantity
    start, end = quantity.start, quantity.end
    if start > 0 and (tokens[start - 1].text in CURRENCY_SIGNS):
        return replace(quantity, unit=UNITS[tokens[start - 1].text], text=tokens[start - 1].text + quantity.text)
    if end < len(tokens) and tokens[end].text in _DASHES:
        end += 1
    if end < len(tokens) and tokens[end].folded == "per":
        cent = end + 1 < len(tokens) and tokens[end + 1].folded == "cent"
        return replace(quantity, unit=UNITS["%"], end=end + 2, text=f"{quantity.text} per cent") if cent else quantity
    return _unit_at(tokens, quantity, end)


def _unit_at(tokens: Sequence[Token], quantity: Quantity, end: int) -> Quantity:
    if end >= len(tokens):
        return quantity
    token = tokens[end]
    if token.text == "°" and end + 1 < len(tokens) and tokens[end + 1].folded in ("c", "f"):
        return replace(
            quantity,
            unit=UNITS["°" + tokens[end + 1].folded],
            end=end + 2,
            text=f"{quantity.text} °{tokens[end + 1].text}",
        )
    unit = UNITS.get(token.folded)
    if unit is None or (token.folded in ATTACHED_ONLY and not (quantity.digits and token.folded in "mgl")):
        return quantity
    return replace(quantity, unit=unit, end=end + 1, text=f"{quantity.text} {token.text}")


def _bounded(tokens: Sequence[Token], quantity: Quantity, found: list[Quantity]) -> Quantity:
    """Takes up what is said before a number: a range's lower end, a bound, a hedge."""
    if quantity.code:
        return quantity
    before = found[-1] if found else None
    if before is not None and not before.code and not before.is_range and before.value < quantity.value:
        between = [token.folded for token in tokens[before.end : quantity.start]]
        lead = tokens[before.start - 1].folded if before.start else ""
        dash = (
            len(between) == 1
            and between[0] in _DASHES
            and tokens[before.end].sentence == tokens[quantity.start].sentence
        )
        words = (between == ["and"] and lead == "between") or (
            between == ["to"] and (lead == "from" or before.unit == quantity.unit or not before.unit)
        )
        if (dash or words) and not quantity.ordinal:
            found.pop()
            text = f"{before.text} {between[0]} {quantity.text}"
            return replace(quantity, low=before.value, start=before.start, text=text, others=())
    last = quantity.start - 1 - (quantity.start > 0 and tokens[quantity.start - 1].text in CURRENCY_SIGNS)
    one = tokens[last].folded if last >= 0 else ""
    two = (tokens[last - 1].folded, one) if last > 0 else ("", one)
    if one in numerals.ABOVE or two in numerals.TWO_WORDS_ABOVE:
        return replace(quantity, high=math.inf)
    if one in numerals.BELOW or two in numerals.TWO_WORDS_BELOW:
        return replace(quantity, low=-math.inf)
    return replace(quantity, hedged=True) if one in numerals.ABOUT else quantity
