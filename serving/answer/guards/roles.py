"""Who did what to whom: rejects ``Alice follows Bob`` where the evidence says ``Bob follows Alice``.

Looks only at a name, a verb and a name in a row; the passive turns the two round. Anything less plain it leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from serving.answer.guards.dates import MONTHS, WEEKDAYS
from serving.answer.guards.reading import Kind, Reading, Sentence, Token
from serving.answer.guards.rejection import Rejection
from serving.answer.text import STOP_WORDS, stem
from serving.answer.types import Reason

_REACH = 12
_NO_PARTY = STOP_WORDS | frozenset(MONTHS) | WEEKDAYS
_BE = frozenset("is are was were been being be got gets".split())
_SYMMETRIC = frozenset(
    stem(word)
    for word in (
        "marry married marries meet met meets border borders bordered equal equals resemble resembles match matched "
        "date dated divorce divorced differ differs neighbour neighbor and join joined fight fought face faced near "
        "close similar same together partner co-wrote star starred"
    ).split()
)


class Deed(NamedTuple):
    """A verb's stem, with the names (stems of their last words) that do it and that it is done to; all as written."""

    verb: str
    doer: str
    done_to: str
    words: tuple[str, ...]


def role_guard(claim: Reading, evidence: Reading) -> Rejection | None:
    """Rejects a claim that gives one party's deed to the other."""
    said = [deed for sentence in claim.sentences for deed in deeds(sentence)]
    if not said:
        return None
    told = [deed for sentence in evidence.sentences for deed in deeds(sentence)]
    for deed in said:
        same = [other for other in told if other.verb == deed.verb]
        if any(other.doer == deed.doer and other.done_to == deed.done_to for other in same):
            continue
        turned = next((o for o in same if o.doer == deed.done_to and o.done_to == deed.doer), None)
        if turned is not None:
            return Rejection(Reason.ROLE_MISMATCH, (" ".join(deed.words), " ".join(turned.words)))
    return None


def deeds(sentence: Sentence) -> Iterator[Deed]:
    """What stands as name, verb, name, active or passive, no other name and no comma between."""
    tokens = sentence.tokens
    runs = list(_runs(tokens))
    for (begin, end), (start, last) in pairwise(runs):
        between = tokens[end:start]
        if not between or len(between) > _REACH or any(token.kind is Kind.SYMBOL for token in between):
            continue
        if any(token.folded in ("and", "or", "not", "never", "but", "who", "which", "that") for token in between):
            continue
        verbs = [token for token in between if token.is_content and token.folded not in STOP_WORDS]
        if not verbs or verbs[0].stem in _SYMMETRIC:
            continue
        verb = verbs[0]
        at = between.index(verb)
        passive = any(token.folded in _BE for token in between[:at]) and "by" in {t.folded for t in between[at:]}
        one, two = tokens[end - 1].stem, tokens[last - 1].stem
        if one != two:
            words = (_written(tokens[begin:end]), verb.text, _written(tokens[start:last]))
            yield Deed(verb.stem, two if passive else one, one if passive else two, words)


def _written(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens)


def _runs(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Half-open ranges of capitalised words in a row. A sentence's first word counts unless it is a function word."""
    start = None
    for at, token in enumerate(tokens):
        if token.kind is Kind.WORD and token.text[0].isupper() and token.folded not in _NO_PARTY:
            start = at if start is None else start
        elif start is not None:
            yield start, at
            start = None
    if start is not None:
        yield start, len(tokens)
