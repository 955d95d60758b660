"""A retriever over the passages of one suite row, in memory: the product then answers from them and nothing else.

It stands where the index stands, behind the seam ``Retriever``. It has no embeddings: both searches rank by the rarity
of the words that question and passage share, rarity counted over the whole suite, as an index of it would count.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from serving.answer.prompt import premise
from serving.answer.text import content_words
from serving.answer.types import Deadline, Passage
from serving.evaluation.rows import QaPassage, QaRow


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How many passages of a suite hold each content word (stem), and how many passages there are."""

    held: Counter[str]
    passages: int

    @classmethod
    def of(cls, rows: Iterable[QaRow]) -> Vocabulary:
        texts = {(passage.title, passage.text): passage for row in rows for passage in row.passages}
        held = Counter(word for each in texts.values() for word in _words(_passage(each)))
        return cls(held, len(texts))

    def rarity(self, word: str) -> float:
        """More for rarer words, at least 0: the logarithm that BM25 uses."""
        count = self.held[word]
        return math.log(1 + (self.passages - count + 0.5) / (count + 0.5))


class RowPassages:
    """The seam ``Retriever`` over one row. A passage that shares no content word with the question is still found."""

    def __init__(self, row: QaRow, vocabulary: Vocabulary, version: str) -> None:
        self._passages = passages_of(row)
        self._words = [_words(passage) for passage in self._passages]
        self._vocabulary = vocabulary
        self._version = version

    async def lexical(self, query: str, limit: int, *, deadline: Deadline) -> list[Passage]:
        del deadline  # a row has a handful of passages
        asked = set(content_words(query))
        scores = [math.fsum(map(self._vocabulary.rarity, sorted(asked & words))) for words in self._words]
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        return [self._passages[place].scored(scores[place]) for place in order[:limit]]

    async def hybrid(self, query: str, limit: int, *, deadline: Deadline) -> list[Passage]:
        return await self.lexical(query, limit, deadline=deadline)

    async def frequencies(self, words: Sequence[str], *, deadline: Deadline) -> list[int]:
        del deadline
        return [max((self._vocabulary.held[stem] for stem in content_words(word)), default=0) for word in words]

    async def version(self) -> str:
        return self._version


def passages_of(row: QaRow) -> list[Passage]:
    """The row's passages as the product reads them, in the row's order, equal ones once."""
    return list({passage.id: passage for passage in map(_passage, row.passages)}.values())


def identity(title: str, text: str) -> str:
    """What names a passage of a suite: a hash of what it says."""
    return hashlib.sha256(f"{title}\0{text}".encode()).hexdigest()[:16]


def _passage(given: QaPassage) -> Passage:
    # Each is a voice of its own: a suite does not say which passages share a source.
    name = identity(given.title, given.text)
    return Passage(id=name, text=given.text, title=given.title)


def _words(passage: Passage) -> set[str]:
    return set(content_words(premise(passage)))
