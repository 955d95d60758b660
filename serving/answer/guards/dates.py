"""Dates: a claim's year, month, day, decade or century must be one that the evidence gives.

``3 March 2020``, ``March 3, 2020`` and ``2020-03-03`` are one date; ``the 1990s`` holds 1994, the 19th century 1850.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from serving.answer.guards.numerals import ORDINALS
from serving.answer.guards.reading import Kind, Reading, Token
from serving.answer.guards.rejection import Rejection
from serving.answer.types import Reason

_MONTHS = ("january february march april may june july august september october november december").split()
MONTHS = {name: number for number, name in enumerate(_MONTHS, start=1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS, start=1)
}
MONTHS["sept"] = 9
_ALSO_WORDS = frozenset(
    ("may", "march", "mar", "jan", "jun", "dec", "sep", "oct", "nov", "apr", "aug", "feb", "jul", "august")
)
_BEFORE_A_MONTH = frozenset(
    "in of since until till by on during early late mid from to and through last next this".split()
)
WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"[12]\d{3}")
_DECADE = re.compile(r"([12]\d{2}0)['’]?s")
_ISO_DASHES = frozenset("-‐‑−")


@dataclass(frozen=True, slots=True)
class Date:
    """A date as far as it is given. ``first`` and ``last`` are the years it may lie in; 0 for an unknown part."""

    text: str
    start: int
    end: int
    first: int = 0
    last: int = 0
    month: int = 0
    day: int = 0
    weekday: str = ""

    @property
    def is_period(self) -> bool:
        return self.first != self.last


def dates(tokens: Sequence[Token]) -> list[Date]:
    """The dates among ``tokens``, in order; ``start`` and ``end`` number tokens, half-open."""
    found: list[Date] = []
    at = 0
    while at < len(tokens):
        date = next(_readings(tokens, at), None)
        if date is not None:
            found.append(date)
        at = max(at + 1, date.end if date else 0)
    return found


def _readings(tokens: Sequence[Token], at: int) -> Iterator[Date]:
    for read in (_iso, _numeric, _day_month, _month_first, _period, _year, _weekday):
        date = read(tokens, at)
        if date is not None:
            yield date


def _iso(tokens: Sequence[Token], at: int) -> Date | None:
    if at + 4 >= len(tokens) or not _YEAR.fullmatch(tokens[at].text):
        return None
    one, month, two, day = (tokens[at + step] for step in range(1, 5))
    if one.text not in _ISO_DASHES or two.text not in _ISO_DASHES or tokens[at].end != one.start:
        return None
    digits = _DAY.match(day.text)  # the time may follow: 2020-03-03T10:30
    if not (month.text.isdecimal() and 1 <= int(month.text[:4]) <= 12 and digits and 1 <= int(digits[1]) <= 31):
        return None
    year = int(tokens[at].text)
    return Date(_text(tokens, at, at + 5), at, at + 5, year, year, int(month.text), int(digits[1]))


def _numeric(tokens: Sequence[Token], at: int) -> Date | None:
    """``03/04/2020`` may be read by either convention: only the year is sure, unless one number is above 12."""
    found = re.fullmatch(r"(\d{1,2})[./](\d{1,2})[./]([12]\d{3})", tokens[at].text)
    if not found:
        return None
    one, two, year = (int(part) for part in found.groups())
    day, month = (one, two) if one > 12 else (two, one) if two > 12 else (0, 0)
    return Date(tokens[at].text, at, at + 1, year, year, month if month <= 12 else 0, day if day <= 31 else 0)


def _month_at(tokens: Sequence[Token], at: int) -> int:
    return MONTHS.get(tokens[at].folded, 0) if at < len(tokens) and tokens[at].text[:1].isupper() else 0


def _number_at(tokens: Sequence[Token], at: int, pattern: re.Pattern[str]) -> int:
    """The number of a day or a year at a token, 0 when there is none."""
    found = pattern.fullmatch(tokens[at].folded) if at < len(tokens) and tokens[at].kind is Kind.NUMBER else None
    value = int(found[1] if found and pattern.groups else found[0]) if found else 0
    return value if pattern is _YEAR or value <= 31 else 0


def _skip(tokens: Sequence[Token], at: int, *words: str) -> int:
    return at + (at < len(tokens) and tokens[at].folded in words)


def _day_month(tokens: Sequence[Token], at: int) -> Date | None:
    day = _number_at(tokens, at, _DAY)
    middle = _skip(tokens, at + 1, "of")
    month = _month_at(tokens, middle)
    if not day or not month:
        return None
    after = _skip(tokens, middle + 1, ",", "of")
    year = _number_at(tokens, after, _YEAR)
    end = after + 1 if year else middle + 1
    return Date(_text(tokens, at, end), at, end, year, year, month, day)


def _month_first(tokens: Sequence[Token], at: int) -> Date | None:
    month = _month_at(tokens, at)
    if not month:
        return None
    day_at = _skip(tokens, at + 1, ".", "the")
    day = _number_at(tokens, day_at, _DAY)
    after = _skip(tokens, day_at + 1 if day else at + 1, ",", "of")
    year = _number_at(tokens, after, _YEAR)
    end = after + 1 if year else day_at + 1 if day else at + 1
    before = tokens[at - 1].folded if at else ""
    if not day and not year and tokens[at].folded in _ALSO_WORDS and before not in _BEFORE_A_MONTH:
        return None
    return Date(_text(tokens, at, end), at, end, year, year, month, day)


def _period(tokens: Sequence[Token], at: int) -> Date | None:
    """A decade (``1990s``) or a century (``19th century``, ``nineteenth-century``)."""
    token = tokens[at]
    decade = _DECADE.fullmatch(token.folded)
    end = at + 1
    if not decade and _YEAR.fullmatch(token.folded) and token.folded[3] == "0" and end + 1 < len(tokens):
        apostrophe = (
            tokens[end].text in "'’" and tokens[end + 1].folded == "s" and tokens[end].end == tokens[end + 1].start
        )
        decade, end = (_YEAR.fullmatch(token.folded), end + 2) if apostrophe else (None, end)
    if decade:
        first = int(decade[0][:4])
        return Date(_text(tokens, at, end), at, end, first, first + (99 if first % 100 == 0 else 9))
    ordinal = _DAY.fullmatch(token.folded)
    number = int(ordinal[1]) if ordinal and not token.folded.isdecimal() else ORDINALS.get(token.folded, 0)
    end = _skip(tokens, end, "-")
    if not 1 <= number <= 30 or end >= len(tokens) or tokens[end].folded not in ("century", "centuries"):
        return None
    return Date(_text(tokens, at, end + 1), at, end + 1, 100 * number - 99, 100 * number)


def _year(tokens: Sequence[Token], at: int) -> Date | None:
    year = _number_at(tokens, at, _YEAR)
    return Date(tokens[at].text, at, at + 1, year, year) if year else None


def _weekday(tokens: Sequence[Token], at: int) -> Date | None:
    name = tokens[at].folded.removesuffix("'s").removesuffix("s")
    return Date(tokens[at].text, at, at + 1, weekday=name) if name in WEEKDAYS else None


def _text(tokens: Sequence[Token], start: int, end: int) -> str:
    return " ".join(token.text for token in tokens[start:end])


def date_guard(claim: Reading, evidence: Reading) -> Rejection | None:
    """Rejects a claim with a date that the evidence does not give."""
    wanted = dates(claim.tokens)
    if not wanted:
        return None
    given = dates(evidence.tokens)
    spans = _spans(evidence.tokens, given)
    sentence_of = [evidence.tokens[date.start].sentence for date in given]
    distinct = {(date.first, date.last, date.month, date.day, date.weekday): date for date in wanted}
    for date in distinct.values():
        if not _told(date, given, sentence_of, spans):
            return Rejection(Reason.DATE_MISMATCH, (date.text, *_nearest(date, given)))
    return None


def _told(date: Date, given: Sequence[Date], sentence_of: Sequence[int], spans: Sequence[tuple[int, int]]) -> bool:
    if any(_agrees(date, other) for other in given):
        return True
    if date.is_period:
        return any(first <= date.last and date.first <= last for first, last in spans)
    if not (date.first and date.month):
        return False
    years = {at for at, other in zip(sentence_of, given, strict=True) if other.first <= date.first <= other.last}
    return any(  # "on 3 March they met; in 2020 …": the parts stand apart in one sentence
        at in years and other.month == date.month and not other.first and date.day in (0, other.day)
        for at, other in zip(sentence_of, given, strict=True)
    )


def _agrees(date: Date, other: Date) -> bool:
    """Whether ``other`` gives every part that ``date`` gives."""
    if date.weekday or other.weekday:
        return date.weekday == other.weekday
    if date.first and not (date.first <= other.first and other.last <= date.last):
        return False
    return (not date.month or date.month == other.month) and (not date.day or date.day == other.day)


def _spans(tokens: Sequence[Token], given: Sequence[Date]) -> list[tuple[int, int]]:
    """Years from and to: ``1990–1995``, ``from 1990 to 1995``."""
    spans = []
    for one, two in pairwise(given):
        between = [token.folded for token in tokens[one.end : min(two.start, one.end + 3)]]
        if one.first and two.last and one.first <= two.last and between in (["-"], ["–"], ["to"], ["until"], ["and"]):
            spans.append((one.first, two.last))
    return spans


def _nearest(date: Date, given: Sequence[Date]) -> tuple[str, ...]:
    """The evidence's date that looks most like a slip of this one, for people to read."""
    if not given:
        return ()
    return (min(given, key=lambda other: (other.month != date.month, abs(other.first - date.first))).text,)
