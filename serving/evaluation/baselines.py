"""Systems with no model, whose figures on ASQA are published: the top passage, and its first two sentences.

Each cites the passage it copies, so a sound harness gives them near-perfect citations and poor answers.
"""

from __future__ import annotations

import re

from serving.answer.sentences import split, terminator_start
from serving.evaluation.alce import Item
from serving.evaluation.estimates import NotApplicable, Score
from serving.evaluation.strings import answer_share

_BRACKETED = re.compile(r"\s?\[\d[^\]\n]{0,20}\]")
"""A passage's own footnote marks, which would be read as citations, and as part of the word they follow."""


def top_passage(item: Item) -> str:
    """The first document, each sentence citing it. Empty when there is none."""
    return _copied(item, None)


def first_sentences(item: Item, count: int = 2) -> str:
    """The first sentences of the first document, each citing it."""
    return _copied(item, count)


def answer_recall(item: Item, k: int) -> Score:
    """The share of readings whose answer stands in the first ``k`` documents: what a reader of them could know."""
    if item.answers is None:
        return NotApplicable.NO_REFERENCE
    return answer_share("\n".join(_BRACKETED.sub("", doc.text) for doc in item.docs[:k]), item.answers)


def _copied(item: Item, count: int | None) -> str:
    if not item.docs:
        return ""
    text = " ".join(_BRACKETED.sub("", item.docs[0].text).split())
    return " ".join(_marked(sentence.rstrip()) for sentence in split(text)[:count])


def _marked(sentence: str) -> str:
    end = terminator_start(sentence)
    return f"{sentence[:end]} [1]{sentence[end:]}"
