"""Passages and sentences that answer a query among those that do not, for the reranker."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from finetune.pairs.groups import RERANKER, Group, Row, focus, sentences
from serving.answer.prompt import premise
from serving.answer.text import content_words
from serving.answer.types import Passage
from serving.evaluation.rows import QaRow, RerankPassage, RerankRow


def document(passage: RerankPassage) -> str:
    """A passage as the reranker reads it."""
    return premise(Passage(id="", title=passage.title, text=passage.text))


def from_ranked(
    rows: Sequence[RerankRow], negatives: int, words: int, rng: random.Random, kind: str
) -> Iterator[Group]:
    """Each relevant passage beside some that are not, the harder ones (which stand first) more often."""
    for row in rows:
        right = [passage for passage in row.passages if passage.relevance > 0]
        wrong = [passage for passage in row.passages if passage.relevance == 0]
        for passage in right:
            hard = wrong[: max(negatives, (2 * len(wrong)) // 3)]
            chosen = rng.sample(hard, min(negatives, len(hard)))
            if chosen:
                made = [Row(_cut(one, row.query, words), row.query, label=one is passage) for one in (passage, *chosen)]
                yield Group(RERANKER, tuple(made), kind)


def from_sentences(rows: Sequence[QaRow], negatives: int, rng: random.Random) -> Iterator[Group]:
    """The sentence that holds the answer beside others of its passage, those nearest to the question first."""
    for row in rows:
        if not row.answerable or not row.answers or not row.passages:
            continue
        told = sentences(row.passages[0].text)
        right = [sentence for sentence in told if any(answer in sentence for answer in row.answers)]
        wrong = nearest([sentence for sentence in told if sentence not in right], row.question)
        if len(right) == 1 and wrong:
            hard = [wrong[0], *rng.sample(wrong[1:], min(negatives - 1, len(wrong) - 1))]
            title = row.passages[0].title if rng.random() < 0.3 else ""
            put = [premise(Passage(id="", title=title, text=one)) for one in (right[0], *hard)]
            made = [Row(text, row.question, label=place == 0) for place, text in enumerate(put)]
            yield Group(RERANKER, tuple(made), "sentences")


def nearest(told: Sequence[str], question: str) -> list[str]:
    """The sentences, those with most of the question's words first."""
    asked = set(content_words(question))
    return sorted(told, key=lambda sentence: -len(asked & set(content_words(sentence))))


def _cut(passage: RerankPassage, query: str, words: int) -> str:
    return premise(Passage(id="", title=passage.title, text=focus(passage.text, query, words)))
