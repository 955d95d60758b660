"""What pair encoders learn from: groups of rows that are told apart from one another."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from serving.answer.sentences import split
from serving.answer.text import content_words

VERIFIER, RERANKER, RELEVANCE = TASKS = ("verifier", "reranker", "relevance")

_FEWEST_WORDS, _MOST_WORDS = 5, 45


@dataclass(frozen=True, slots=True)
class Row:
    """A document, the settled text beside it (a claim or a query), and whether the two belong together."""

    document: str
    settled: str
    label: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one task that stand in one batch. ``kind`` says how they were made."""

    task: str
    rows: tuple[Row, ...]
    kind: str


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order, each on one line."""
    return [" ".join(sentence.split()) for sentence in split(text) if sentence.strip()]


def is_statement(sentence: str) -> bool:
    """Whether a sentence says something by itself that a claim could say too."""
    words = sentence.split()
    return (
        _FEWEST_WORDS <= len(words) <= _MOST_WORDS
        and sentence.endswith((".", "!", ".”", '."', ".)"))
        and re.search(r"[a-z]{2}", sentence) is not None
    )


def around(told: Sequence[str], at: int, words: int, rng: random.Random) -> list[str]:
    """Neighbouring sentences with number ``at`` among them, together at most about ``words`` words."""
    first = last = at
    total = len(told[at].split())
    while True:
        steps = [step for step in (first - 1, last + 1) if 0 <= step < len(told)]
        steps = [step for step in steps if total + len(told[step].split()) <= words]
        if not steps:
            return list(told[first : last + 1])
        step = rng.choice(steps)
        total += len(told[step].split())
        first, last = min(first, step), max(last, step)


def focus(text: str, settled: str, words: int) -> str:
    """So many words of a text, in whole sentences, with most of what ``settled`` says in them."""
    if len(text.split()) <= words:
        return text
    told = sentences(text)
    wanted = set(content_words(settled))
    held = [wanted & set(content_words(sentence)) for sentence in told]
    lengths = [len(sentence.split()) for sentence in told]
    best, span = -1, (0, 1)
    for first in range(len(told)):
        last, total = first, 0
        found: set[str] = set()
        while last < len(told) and (last == first or total + lengths[last] <= words):
            total += lengths[last]
            found |= held[last]
            last += 1
        if len(found) > best:
            best, span = len(found), (first, last)
    return " ".join(" ".join(told[span[0] : span[1]]).split()[:words])
