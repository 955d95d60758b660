"""False claims made from true ones by changing one thing: a number, a date, a unit, the polarity, a name, two roles.

Deterministic: the same claim gives the same swaps. What is made is false of the evidence that proved the original,
but for the rare value that happens to stand there in the same sense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from serving.answer.guards.dates import Date, dates
from serving.answer.guards.names import names
from serving.answer.guards.opposites import POLAR
from serving.answer.guards.quantities import Quantity, quantities
from serving.answer.guards.reading import Reading
from serving.answer.guards.roles import deeds

_OTHER_UNIT = {
    "kilometre": "miles",
    "metre": "feet",
    "mile": "kilometres",
    "foot": "metres",
    "inch": "centimetres",
    "centimetre": "inches",
    "millimetre": "centimetres",
    "kilogram": "pounds",
    "pound_weight": "kilograms",
    "gram": "kilograms",
    "milligram": "grams",
    "microgram": "milligrams",
    "ounce": "grams",
    "ton": "pounds",
    "tonne": "kilograms",
    "litre": "gallons",
    "millilitre": "litres",
    "gallon": "litres",
    "hectare": "acres",
    "acre": "hectares",
    "second": "minutes",
    "minute": "hours",
    "hour": "days",
    "day": "weeks",
    "week": "days",
    "month": "years",
    "year": "months",
    "decade": "years",
    "century": "years",
    "percent": "kilograms",
    "dollar": "euros",
    "euro": "dollars",
    "sterling": "dollars",
    "pound": "euros",
    "yen": "dollars",
    "rupee": "dollars",
    "celsius": "°F",
    "fahrenheit": "°C",
    "gigabyte": "MB",
    "megabyte": "GB",
    "byte": "bits",
    "mph": "kph",
    "km/h": "mph",
    "watt": "kilowatts",
    "kilowatt": "watts",
}
_MONTHS = "January February March April May June July August September October November December".split()
_AUXILIARY = re.compile(
    r"\b(?:(?:is|are|was|were|can|could|will|would|should|may|might|must)|(?:has|have|had)(?= (?:been|\w+ed)\b))\b"
    r"(?! (?:not|only|solely|yet)\b|n't)"
)
_NOT = re.compile(r" (?:not|never)\b|n't\b")
_NEGATIVE = re.compile(
    r"\b(?:not?|never|nor|none|neither|nothing|nobody|nowhere|without|cannot|unable|lack\w*)\b|n't\b", re.I
)
_NO_NEGATION = re.compile(r"\bnot (?:only|just|merely|even|necessarily)\b|n't help but\b")


def swapped_numbers(claim: str) -> Iterator[str]:
    """Each plain number of the claim outside of its dates, made another one."""
    reading = Reading(claim)
    dated = {at for date in dates(reading.tokens) for at in range(date.start, date.end)}
    for quantity in quantities(reading.tokens):
        if quantity.code or quantity.is_range or quantity.start in dated or quantity.text.casefold() == "one":
            continue
        at = reading.tokens[quantity.start]
        if at.folded in ("a", "an") or at.folded.rstrip("stndrh").isalpha():
            written = ("seven", "four")[quantity.value == 7]
            if quantity.end - quantity.start > 1 or quantity.ordinal:
                continue
            yield reading.text[: at.start] + written + reading.text[at.end :]
        else:
            digits = re.match(r"\d+", at.text)
            if digits:
                changed = str(int(digits[0][:9]) + 3) + digits[0][9:]
                yield reading.text[: at.start] + changed + at.text[digits.end() :] + reading.text[at.end :]


def swapped_dates(claim: str) -> Iterator[str]:
    """Each date of the claim with its year, month or day changed."""
    reading = Reading(claim)
    for date in dates(reading.tokens):
        yield from _changed_date(reading, date)


def _changed_date(reading: Reading, date: Date) -> Iterator[str]:
    for token in reading.tokens[date.start : date.end]:
        year = re.match(r"[12]\d{3}", token.text)
        if year and date.first:
            step = 20 if date.is_period else 3
            yield reading.text[: token.start] + str(int(year[0]) + step) + reading.text[token.start + 4 :]
        elif date.month and token.text.title() in _MONTHS:
            other = _MONTHS[date.month % 12]
            yield reading.text[: token.start] + other + reading.text[token.end :]
        elif date.day and re.fullmatch(r"\d{1,2}", token.text) and int(token.text) == date.day:
            yield reading.text[: token.start] + str(date.day % 28 + 1) + reading.text[token.end :]


def swapped_units(claim: str) -> Iterator[str]:
    """Each quantity of the claim with another unit for its own."""
    reading = Reading(claim)
    for quantity in quantities(reading.tokens):
        other = _OTHER_UNIT.get(quantity.unit.name) if quantity.unit else None
        if other is not None:
            yield _with_unit(reading, quantity, other)


def _with_unit(reading: Reading, quantity: Quantity, unit: str) -> str:
    first, last = reading.tokens[quantity.start], reading.tokens[quantity.end - 1]
    start = first.start - (reading.text[first.start - 1 : first.start] in ("$", "€", "£", "¥", "₹"))
    number = re.sub(r"(?:[^\W\d_]+|[%°$€£ -]+)$", "", reading.text[first.start : last.end]) or first.text
    end = last.end + (reading.text[last.end : last.end + 1] == "%")
    return f"{reading.text[:start]}{number.rstrip(' -')} {unit}{reading.text[end:]}"


def negated(claim: str) -> Iterator[str]:
    """The claim with "not" after its first auxiliary; nothing when it negates already or has none."""
    auxiliary = None if _NOT.search(claim) else _AUXILIARY.search(claim)
    if auxiliary:
        yield f"{claim[: auxiliary.end()]} not{claim[auxiliary.end() :]}"


def unnegated(claim: str) -> Iterator[str]:
    """The claim with its first negation taken away; nothing when it has none."""
    negation = _NOT.search(claim)
    if negation:
        yield claim[: negation.start()] + claim[negation.end() :]


def denials(evidence: Reading) -> Iterator[str]:
    """The evidence's own sentences of 6 to 40 words that negate once and in so many words, each without its negation.

    False by what it is made from, where a claim without its negation may say what the evidence leaves open.
    """
    for sentence in evidence.sentences:
        text = evidence.text[sentence.tokens[0].start : sentence.tokens[-1].end]
        if 6 <= len(text.split()) <= 40 and len(_NEGATIVE.findall(text)) == 1 and not _NO_NEGATION.search(text):
            yield from unnegated(text)


def swapped_opposites(claim: str) -> Iterator[str]:
    """The claim with each word that has an opposite made that opposite."""
    for token in Reading(claim).tokens:
        if token.folded in POLAR:
            reading = Reading(claim)
            yield reading.text[: token.start] + min(POLAR[token.folded]) + reading.text[token.end :]


def swapped_names(claim: str, others: Sequence[str]) -> Iterator[str]:
    """The last word of each name of the claim made another name, the next of ``others`` that the claim lacks."""
    reading = Reading(claim)
    for name in names(reading.tokens):
        other = next((word for word in others if word not in reading.text), None)
        if other:
            yield reading.text[: name[-1].start] + other + reading.text[name[-1].end :]


def swapped_roles(claim: str) -> Iterator[str]:
    """The claim with doer and done-to of its deed changing places."""
    for sentence in Reading(claim).sentences:
        for deed in deeds(sentence):
            one, _, two = deed.words
            pattern = re.compile(rf"\b({re.escape(one)}|{re.escape(two)})\b")
            yield pattern.sub(lambda match, one=one, two=two: two if match[1] == one else one, claim)  # type: ignore[misc]
            break
