"""Named things: every name, identifier and quoted string of a claim must stand in the evidence.

A name may stand there by its head (``Kutcher`` for ``Ashton Kutcher``), in another case, plural or possessive, as the
adjective of a country, or as the acronym of its words. The first word of a sentence is a name only together with
the ones after it: a capital says nothing there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from serving.answer.guards.dates import MONTHS, WEEKDAYS
from serving.answer.guards.negation import is_negation
from serving.answer.guards.numerals import CARDINALS, SCALES, TENS
from serving.answer.guards.places import DEMONYMS, UNTELLING
from serving.answer.guards.reading import Kind, Reading, Token
from serving.answer.guards.rejection import Rejection
from serving.answer.text import STOP_WORDS, identifiers, stem
from serving.answer.types import Reason

_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]{2,120})[\"”“»]")
_NO_NAME = frozenset(MONTHS) | WEEKDAYS | frozenset(CARDINALS) | frozenset(TENS) | frozenset(SCALES) | UNTELLING
_LINKS = frozenset("of the de la le du van von der den di da del al el bin ibn & - ' ’ .".split())
_LONGEST_LINK = 2
_TITLE_GAP = 7
_REOPENS = frozenset(':;•*-–—"“(')
_DENYING = frozenset("outside other unlike except instead disassociated".split())
_ANAPHORS = frozenset("it he she they this these its his her their that those the".split())
_PRONOUNS = frozenset("it he she they".split())
_SHORTEST_ROOT = 4
_SHORTEST_ACRONYM = 2
_MOST_ALIKE = 64


def name_guard(claim: Reading, evidence: Reading) -> Rejection | None:
    """Rejects a claim that names what the evidence does not."""
    missing = _missing_identifier(claim.text, evidence.text) or _missing_quote(claim, evidence)
    if missing:
        return Rejection(Reason.NAME_MISMATCH, (missing,))
    named = list(names(claim.tokens))
    if not named:
        return None
    words = frozenset(_plain(token.folded) for token in evidence.tokens if token.stem)
    roots = _by_root(words)
    initials = _initials(evidence.tokens)
    told_of = _unnamed_topic(evidence)
    # A claim that refers to the topic in the same way names something else.
    open_topic = told_of is not None and told_of != _unnamed_topic(claim)
    topic: tuple[Token, ...] = ()
    for name in named:
        absent = [token for token in name if not _stands(token, words, roots) and not _spelled_out(token, initials)]
        if not absent or _headed(name, absent) or _is_acronym_of(name, words) or _explained(absent, claim.tokens):
            continue
        if open_topic and (not topic or name[0].start - topic[-1].end <= _TITLE_GAP):
            topic = name  # one name at most can be what the evidence is about, a title of several parts too
            continue
        return Rejection(Reason.NAME_MISMATCH, (" ".join(token.text for token in absent),))
    return None


def names(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """The capitalised names among ``tokens``: runs of capitals, linking words between them left out.

    What a sentence denies need not stand anywhere: names after a negation are left out.
    """
    run: list[Token] = []
    opening = denied = False
    opens, sentence, linked = True, -1, 0
    for token in tokens:
        if token.sentence != sentence:
            yield from _telling(run, opening=opening)
            run, opens, denied, sentence = [], True, False, token.sentence
        if is_negation(token) or token.folded in _DENYING:
            denied = True
        if token.kind is Kind.WORD and token.text[0].isupper() and not denied:
            if not run:
                opening = opens
            run.append(token)
            linked = 0
        elif run and token.folded in _LINKS and linked < _LONGEST_LINK:
            linked += 1
        else:
            yield from _telling(run, opening=opening)
            run = []
        opens = token.kind is Kind.SYMBOL and (opens or token.text in _REOPENS)
    yield from _telling(run, opening=opening)


def _telling(run: Sequence[Token], *, opening: bool) -> Iterator[tuple[Token, ...]]:
    """The words of a run that name something; the word that opens a sentence is capitalised whatever it is."""
    kept = run[1:] if run and opening and not any(char.isupper() for char in run[0].text[1:]) else run
    telling = tuple(
        token
        for token in kept
        if token.folded not in STOP_WORDS and token.folded not in _NO_NAME and len(token.folded) > 1
    )
    if telling:
        yield telling


def _plain(word: str) -> str:
    """A word without its accents, possessive ending and plural."""
    bare = re.sub(r"['’]s?$", "", word)
    decomposed = unicodedata.normalize("NFD", bare)
    return stem("".join(char for char in decomposed if not unicodedata.combining(char)))


def _stands(token: Token, words: frozenset[str], roots: dict[str, list[str]]) -> bool:
    word = _plain(token.folded)
    if word in words or any(_plain(other) in words for other in DEMONYMS.get(token.folded, ())):
        return True
    if any(_common_root(word, other) for other in roots.get(word[:_SHORTEST_ROOT], ())):
        return True  # Canada, Canadian; Darwin, Darwinism
    return any(part in words for part in re.split(r"['’]", word) if len(part) > 2)


def _by_root(words: frozenset[str]) -> dict[str, list[str]]:
    """The words of four letters and more by their first four, no more of one kind than a language has."""
    found: dict[str, list[str]] = {}
    for word in words:
        alike = found.setdefault(word[:_SHORTEST_ROOT], []) if len(word) >= _SHORTEST_ROOT else []
        if len(alike) < _MOST_ALIKE:
            alike.append(word)
    return found


def _common_root(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    shared = 0
    while shared < len(short) and short[shared] == long[shared]:
        shared += 1
    return shared >= max(_SHORTEST_ROOT + 1, len(short) - 1) or (shared == len(short) >= _SHORTEST_ROOT)


def _headed(name: Sequence[Token], absent: Sequence[Token]) -> bool:
    """A name of several words stands by its last: the surname, the company's or place's own head."""
    return len(name) > 1 and len(absent) < len(name) and name[-1] not in absent


def _initials(tokens: Sequence[Token]) -> str:
    """The first letters of the evidence's words, in order, small linking words left out."""
    return "".join(token.folded[0] for token in tokens if token.kind is Kind.WORD and token.folded not in _LINKS)


def _spelled_out(token: Token, initials: str) -> bool:
    """An acronym whose letters begin words of the evidence, in a row."""
    return token.text.isupper() and _SHORTEST_ACRONYM <= len(token.text) <= 8 and token.folded in initials


def _is_acronym_of(name: Sequence[Token], words: frozenset[str]) -> bool:
    short = "".join(token.folded[0] for token in name)
    return len(short) >= _SHORTEST_ACRONYM and short in words


def _explained(absent: Sequence[Token], claim: Sequence[Token]) -> bool:
    """An acronym in brackets that the claim itself makes of the words before it: ``cardiothoracic ratio (CTR)``."""
    if len(absent) != 1 or not absent[0].text.isupper():
        return False
    at = next(at for at, token in enumerate(claim) if token is absent[0])
    before = "".join(token.folded for token in claim[max(0, at - 7) : at] if token.kind is Kind.WORD)
    letters = iter(before)
    return at > 0 and claim[at - 1].text == "(" and all(char in letters for char in absent[0].folded)


def _unnamed_topic(reading: Reading) -> tuple[str, str] | None:
    """How a text that opens with ``It``, ``He`` or ``The film`` refers to what it is about without naming it.

    The pronoun, or the article and the word after it; None when the text opens in any other way.
    """
    tokens = reading.sentences[0].tokens if reading.sentences else ()
    subject = True
    for token, following in pairwise(tokens):
        if subject and token.folded in _ANAPHORS and not following.text[0].isupper():
            return token.folded, following.folded if token.folded not in _PRONOUNS else ""
        subject = token.text == "," or (subject and token.kind is Kind.SYMBOL)
    return None


def _missing_identifier(claim: str, evidence: str) -> str | None:
    """An identifier must stand there whole; a dotted one may stand there by its parts."""
    for name in sorted(identifiers(claim)):
        parts = name.split(".")
        if name in evidence or name[0].isdigit() or name.isalpha() or max(map(len, parts)) < 2:
            continue  # plain letters are judged as words, digits by the guard of numbers; U.S. is no identifier
        if not all(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", evidence, re.IGNORECASE) for part in parts):
            return name
    return None


def _missing_quote(claim: Reading, evidence: Reading) -> str | None:
    """What a claim quotes must stand in the evidence word by word, punctuation and case apart."""
    quotes = [match[1] for match in _QUOTED.finditer(claim.text)]
    if not quotes:
        return None
    said = " ".join(token.folded for token in evidence.tokens if token.stem)
    for quote in quotes:
        words = " ".join(token.folded for token in Reading(quote).tokens if token.stem)
        if words and f" {words} " not in f" {said} ":
            return quote
    return None
