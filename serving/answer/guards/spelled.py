"""Numbers in words: ``twenty-one``, ``two hundred and five``, ``a dozen``, ``two thirds``, ``nineteenth``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from serving.answer.guards import numerals
from serving.answer.guards.reading import Token


class Spelled(NamedTuple):
    """A number in words: its value, the token after it, and whether it is an ordinal."""

    value: float
    end: int
    ordinal: bool = False


def spelled(tokens: Sequence[Token], at: int) -> Spelled | None:
    """The number that begins at a token, None when none does."""
    first = tokens[at].folded
    if first in ("a", "an"):
        return _after_article(tokens, at + 1)
    if first in numerals.ORDINALS:
        return Spelled(float(numerals.ORDINALS[first]), at + 1, ordinal=True)
    if first in numerals.PARTS:
        return Spelled(numerals.PARTS[first], at + 1)
    counts = first in numerals.CARDINALS or first in numerals.TENS or first in ("dozen", "dozens")
    return _cardinal(tokens, at, 0.0) if counts else None


def _after_article(tokens: Sequence[Token], at: int) -> Spelled | None:
    """``a third of it`` is a part, ``a third album`` an ordinal, ``a hundred`` and ``a dozen`` numbers."""
    word, after = (tokens[step].folded if step < len(tokens) else "" for step in (at, at + 1))
    if word in numerals.ORDINALS and after not in ("of", "", "."):
        return Spelled(float(numerals.ORDINALS[word]), at + 1, ordinal=True)
    if word in numerals.PARTS:
        return Spelled(numerals.PARTS[word], at + 1)
    return _cardinal(tokens, at, 1.0) if word in numerals.SCALES or word in numerals.GROUPS else None


def _cardinal(tokens: Sequence[Token], at: int, current: float) -> Spelled:
    total, start = 0.0, at
    while at < len(tokens):
        word = tokens[at].folded
        below = numerals.CARDINALS.get(word, numerals.TENS.get(word))
        if below is not None and (at == start or _extends(current, below)):
            current += below
        elif word == "hundred" or word in numerals.GROUPS:
            current = (current or 1.0) * (100 if word == "hundred" else numerals.GROUPS[word])
        elif word in numerals.SCALES:
            total, current = total + (current or 1.0) * numerals.SCALES[word], 0.0
        elif word in numerals.ORDINALS and _extends(current, numerals.ORDINALS[word]):
            return Spelled(total + current + numerals.ORDINALS[word], at + 1, ordinal=True)
        elif not _joins(tokens, at, total + current):
            break
        at += 1
    part = numerals.PARTS.get(tokens[at].folded) if at < len(tokens) else None
    if part is not None and part != 1 / 2 and total == 0 and current:
        return Spelled(current * part, at + 1)
    return Spelled(total + current, at)


def _extends(current: float, below: float) -> bool:
    """Whether ``below`` may follow: ``twenty one``, ``hundred five``, but not ``one two``."""
    if current == 0:
        return True
    return (below < 10 <= current and current % 10 == 0) or (below < 100 <= current and current % 100 == 0)


def _joins(tokens: Sequence[Token], at: int, so_far: float) -> bool:
    """Whether a hyphen or an "and" goes on with the number: ``twenty-one``, ``two-thirds``, ``hundred and five``."""
    if at + 1 >= len(tokens):
        return False
    word, following = tokens[at].folded, tokens[at + 1].folded
    if word == "and":
        return so_far >= 100 and (following in numerals.CARDINALS or following in numerals.TENS)
    if word != "-" or tokens[at].start != tokens[at - 1].end or tokens[at].end != tokens[at + 1].start:
        return False
    units = numerals.CARDINALS.get(following, 0) or numerals.ORDINALS.get(following, 0)
    return (0 < units < 10 and so_far % 10 == 0) or following in numerals.PARTS
