"""Which questions ask the same: close in meaning by their embeddings, and not told apart by a word that turns them.

Embeddings barely see a "not", an opposite or a changed number: of the 627 questions of SQuAD 2.0's dev articles, pairs
that differ by a "not" alone come as close as 0.994, while a fair paraphrase lies at 0.95. So closeness proposes, and
words decide: two questions that differ in their numbers, in how often they negate, by a pair of opposites, in whether
they ask who, when, where or why, or in what a guard of claims would object to are two.
"""

from __future__ import annotations

import hashlib

from serving.answer.guards.opposites import COMPARATIVE, NEGATIONS, POLAR
from serving.answer.guards.reading import Reading
from serving.answer.guards.rejecting import reject
from serving.answer.text import normalise, numbers

_OPPOSITES = {
    word: POLAR.get(word, frozenset()) | COMPARATIVE.get(word, frozenset()) for word in {*POLAR, *COMPARATIVE}
}
_ASKED = frozenset({"who", "when", "where", "why"})
_CLOSING = " .?!…。？！"


def canonical(question: str) -> str:
    """What two spellings of one question have in common: case, spacing and closing punctuation do not count."""
    return " ".join(normalise(question).split()).rstrip(_CLOSING)


def question_hash(question: str) -> str:
    """SHA-256, in hexadecimal, of the canonical question. Unkeyed: who can guess a question can recognise it."""
    return hashlib.sha256(canonical(question).encode(errors="replace")).hexdigest()


def embedded_form(question: str) -> str:
    """What is embedded of a question. A missing question mark alone would move its vector by 0.04."""
    return f"{canonical(question)}?"


def told_apart(one: str, other: str) -> bool:
    """Whether words say that two questions differ, however close their embeddings are. Knows English."""
    if numbers(one) != numbers(other):
        return True
    reading, against = Reading(one), Reading(other)
    words, others = ([token.folded for token in read.tokens] for read in (reading, against))
    if sum(map(_negates, words)) != sum(map(_negates, others)):
        return True
    asked, wanted = set(words) & _ASKED, set(others) & _ASKED
    if asked and wanted and asked != wanted:
        return True
    alone = set(others) - set(words)
    if any(_OPPOSITES.get(word, frozenset()) & alone for word in set(words) - set(others)):
        return True
    return reject(reading, against) is not None or reject(against, reading) is not None


def _negates(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")
