"""Negation in a sentence: what negates, what it negates, and what is said plainly."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from serving.answer.guards.opposites import IMPLICIT, NEGATIONS, NEGATIVE_PREFIXES
from serving.answer.guards.reading import Kind, Sentence, Token
from serving.answer.text import stem

_SCOPE = 3
_ROOT = 5
_CLAUSE_ENDS = frozenset(", ; : ( ) — – but although though because while which who that whereas if when".split())
_IDIOMS = frozenset(
    (
        ("not", "only"),
        ("no", "doubt"),
        ("not", "just"),
        ("not", "merely"),
        ("not", "necessarily"),
        ("not", "really"),
        ("no", "."),
        ("no", "matter"),
    )
)

_UNDOING = frozenset(map(stem, "unable incapable impossible insufficient lack lacks absent".split()))
# Not the "un" of understand, unit or until.
_UNDONE = re.compile(r"un(?!der|i[^n]|til|less|to$)\w{5,}|\w{2,}less")


def is_negation(token: Token) -> bool:
    return token.folded in NEGATIONS or token.folded.endswith("n't")


def negated(tokens: Sequence[Token]) -> Iterator[tuple[Token, tuple[Token, ...]]]:
    """Each negation with the content words in its scope: the next few in the same clause."""
    for at, token in enumerate(tokens):
        if not is_negation(token):
            continue
        after = tokens[at + 1].folded if at + 1 < len(tokens) else ""
        if (token.folded, after) in _IDIOMS:
            continue
        scope: list[Token] = []
        for other in tokens[at + 1 : at + 1 + 4 * _SCOPE]:
            if (other.folded in _CLAUSE_ENDS and scope) or len(scope) == _SCOPE:
                break
            if other.is_content:
                scope.append(other)
        yield token, tuple(scope)


def affirmed(sentence: Sentence) -> Iterator[str]:
    """The content stems of a sentence that no negation comes before in their clause."""
    denied = False
    for token in sentence.tokens:
        denied = is_negation(token) or (denied and token.folded not in _CLAUSE_ENDS)
        if token.is_content and not denied:
            yield token.stem


def undoes(token: Token) -> bool:
    """Whether a word negates by its form or meaning, so that a negation before it says the plain thing."""
    return token.stem in _UNDOING or _UNDONE.fullmatch(token.folded) is not None


def implies(token: Token, negated_stems: Collection[str] = ()) -> bool:
    """Whether a word negates by itself: by what it means (``lacks``), or by its form one of the stems (``unsafe``)."""
    if token.kind is not Kind.WORD:
        return False
    if token.stem in IMPLICIT:
        return True
    return any(
        token.folded.startswith(prefix) and stem(token.folded[len(prefix) :]) in negated_stems
        for prefix in NEGATIVE_PREFIXES
    ) or (token.folded.endswith("less") and stem(token.folded[:-4]) in negated_stems)


def root(stemmed: str) -> str:
    """What ``insured`` and ``insurance`` share."""
    return stemmed[:_ROOT]
