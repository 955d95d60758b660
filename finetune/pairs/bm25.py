"""BM25 over the passages of some queries: what a reranker must beat."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from serving.answer.text import content_words

_SATURATION, _LENGTH = 1.2, 0.75


class Bm25:
    """Okapi BM25 with Lucene's parameters; how rare a word is, is counted over all of ``documents``."""

    def __init__(self, documents: Sequence[str]) -> None:
        counted = [Counter(content_words(document)) for document in dict.fromkeys(documents)]
        self._holding = Counter(word for words in counted for word in words)
        self._total = len(counted)
        self._mean = sum(words.total() for words in counted) / max(1, self._total)

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        asked = set(content_words(query))
        return [self._one(asked, Counter(content_words(document))) for document in documents]

    def _one(self, asked: set[str], words: Counter[str]) -> float:
        norm = _SATURATION * (1 - _LENGTH + _LENGTH * words.total() / self._mean)
        return math.fsum(self._weight(word) * words[word] / (words[word] + norm) for word in asked if word in words)

    def _weight(self, word: str) -> float:
        held = self._holding[word]
        return math.log(1 + (self._total - held + 0.5) / (held + 0.5))
