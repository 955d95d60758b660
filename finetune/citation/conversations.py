"""Conversations to learn citing from, built from labelled rows: a question over numbered passages, and the right reply.

A reply is one or two short sentences, each with the number of the passage that states it, or the decline line. Answers
are sentences of the passages themselves: what a model learns is to find the sentence that answers, to say it as it
stands, to name where it stands, and to say when none does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from serving.answer.prompt import DECLINE_LINE, with_marker
from serving.answer.quotes import quotable
from serving.answer.text import content_words
from serving.answer.types import Passage
from serving.evaluation.rows import QaPassage, QaRow, RerankPassage, RerankRow

MOST_CHARACTERS = 260
"""Of a sentence in a reply: longer ones say more than was asked."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """``passages`` are in rank order: the first is number 1. ``kind`` says how it was made."""

    question: str
    passages: tuple[Passage, ...]
    reply: str
    kind: str

    @property
    def declines(self) -> bool:
        return self.reply == DECLINE_LINE


class Passages:
    """Makes the passages of a conversation: the right ones among others, shuffled, cut to a length.

    ``words`` is the least and the greatest length they are cut to, drawn anew for each conversation.
    """

    def __init__(self, rng: random.Random, pool: Sequence[Passage], *, most: int, words: tuple[int, int]) -> None:
        self._rng = rng
        self._pool = pool
        self._most = most
        self._words = words
        self._by_title: dict[str, list[Passage]] = {}
        for passage in pool:
            self._by_title.setdefault(passage.title, []).append(passage)

    def around(self, needed: Sequence[Passage], near: Sequence[Passage], *, keep: Sequence[str]) -> list[Passage]:
        """``needed`` and some of ``near`` and of the pool, in random order. Each is cut around what ``keep`` holds."""
        count = self._rng.randint(len(needed), max(self._most, len(needed)))
        others = [passage for passage in near if passage not in needed]
        self._rng.shuffle(others)
        while len(needed) + len(others) < count:
            others.append(self._rng.choice(self._pool))
        texts = {passage.text for passage in needed}
        others = [passage for passage in others if passage.text not in texts]
        chosen = [*needed, *others[: count - len(needed)]]
        self._rng.shuffle(chosen)
        words = self._rng.randint(*self._words)
        return [self._cut(passage, keep, words) for passage in chosen]

    def near_misses(self, row: QaRow, most: int) -> list[Passage]:
        """Up to ``most`` of the pool's passages that share a title with the row's and hold none of its answers."""
        titles = sorted({given.title for given in row.passages} - {""})
        found = [passage for title in titles for passage in self._by_title.get(title, ())]
        own = {given.text for given in row.passages}
        self._rng.shuffle(found)
        missing = (one for one in found if one.text not in own and not any(_holds(one.text, a) for a in row.answers))
        return list(islice(missing, most))

    def some_near_misses(self, row: QaRow) -> list[Passage]:
        """None, some, or as many as a conversation has place for."""
        return self.near_misses(row, self._rng.randint(0, self._most))

    def _cut(self, passage: Passage, keep: Sequence[str], most: int) -> Passage:
        """The passage, or ``most`` of its words around the first of ``keep`` that stands in it."""
        words = passage.text.split()
        if len(words) <= most:
            return passage
        text = " ".join(words)
        at = next((text.index(piece) for piece in keep if piece in text), 0)
        first = len(text[:at].split())
        longest = max([len(piece.split()) for piece in keep if piece in text] or [0])
        start = max(0, min(first - self._rng.randint(0, max(0, most - longest)), len(words) - most))
        return Passage(id=passage.id, title=passage.title, text=" ".join(words[start : start + most]))


def from_qa(row: QaRow, passages: Passages) -> Conversation | None:
    """One passage or several, short answers: the sentence that holds the answer, or the decline."""
    own = [_passage(passage, row.id, at) for at, passage in enumerate(row.passages)]
    if not row.answerable:
        chosen = passages.around(own[:1], [*own[1:], *passages.some_near_misses(row)], keep=())
        return Conversation(row.question, tuple(chosen), DECLINE_LINE, "unanswerable")
    for at, given in enumerate(row.passages):
        if given.supporting is False:
            continue
        sentence = _answering(own[at], row.question, row.answers)
        if sentence is not None:
            others = [p for n, p in enumerate(own) if n != at]
            chosen = passages.around([own[at]], [*others, *passages.some_near_misses(row)], keep=(sentence,))
            return _replied(row.question, chosen, [sentence], "answer")
    return None


def from_two_hops(row: RerankRow | QaRow, passages: Passages) -> Conversation | None:
    """Two passages that are needed: from each the sentence that has most of the question in it."""
    question = row.query if isinstance(row, RerankRow) else row.question
    own = [_passage(given, row.id, at) for at, given in enumerate(_given(row))]
    needed = [own[at] for at, given in enumerate(_given(row)) if _is_needed(given)]
    if len(needed) != 2:
        return None
    sentences = []
    for at, passage in enumerate(needed):
        other = needed[1 - at].title
        best = _closest(passage, f"{question} {other}")
        if best is None:
            return None
        sentences.append(best)
    chosen = passages.around(needed, [p for p in own if p not in needed], keep=sentences)
    return _replied(question, chosen, sentences, "two_hops")


def without_its_passage(row: QaRow, passages: Passages) -> Conversation | None:
    """An answerable question over other passages, of the same title where there are some, that lack every answer."""
    own = [_passage(given, row.id, at) for at, given in enumerate(row.passages)]
    near = [one for one in own if not any(_holds(one.text, answer) for answer in row.answers)]
    near += passages.near_misses(row, 8)
    if not near:
        return None
    return Conversation(row.question, tuple(passages.around(near[:1], near[1:], keep=())), DECLINE_LINE, "no_passage")


def _replied(question: str, chosen: Sequence[Passage], sentences: Sequence[str], kind: str) -> Conversation | None:
    """The reply of sentences, each marked with the first passage that holds it, in the order of the numbers."""
    marked: dict[int, str] = {}
    for sentence in sentences:
        number = next((n for n, p in enumerate(chosen, start=1) if sentence in " ".join(p.text.split())), None)
        if number is None:
            return None
        marked[number] = with_marker(sentence, number)
    return Conversation(question, tuple(chosen), " ".join(marked[number] for number in sorted(marked)), kind)


def _answering(passage: Passage, question: str, answers: Sequence[str]) -> str | None:
    """The sentence that holds a reference answer and most of the question."""
    holding = [
        sentence
        for _, sentence in quotable([passage], 100)
        if len(sentence) <= MOST_CHARACTERS and any(_holds(sentence, answer) for answer in answers)
    ]
    asked = set(content_words(question))
    return max(holding, key=lambda sentence: len(asked & set(content_words(sentence))), default=None)


def _closest(passage: Passage, text: str) -> str | None:
    asked = set(content_words(text))
    found = [sentence for _, sentence in quotable([passage], 100) if len(sentence) <= MOST_CHARACTERS]
    return max(found, key=lambda sentence: len(asked & set(content_words(sentence))), default=None)


def _holds(sentence: str, answer: str) -> bool:
    """Whether the answer stands in the sentence as whole words."""
    return bool(answer.strip()) and re.search(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", sentence) is not None


def _given(row: QaRow | RerankRow) -> Sequence[QaPassage | RerankPassage]:
    return row.passages


def _passage(given: QaPassage | RerankPassage, row: str, at: int) -> Passage:
    return Passage(id=f"{row}-{at}", title=given.title, text=given.text)


def _is_needed(given: QaPassage | RerankPassage) -> bool:
    return bool(given.relevance if isinstance(given, RerankPassage) else given.supporting)


def all_passages(rows: Sequence[QaRow | RerankRow]) -> Iterator[Passage]:
    """Every passage of the rows once: what other questions' passages are made up from."""
    seen: set[str] = set()
    for row in rows:
        for at, given in enumerate(_given(row)):
            if given.text not in seen:
                seen.add(given.text)
                yield _passage(given, row.id, at)
