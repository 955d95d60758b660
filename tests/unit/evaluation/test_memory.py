"""A row's passages as the product's retriever, and the choosing of rows."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.types import Deadline
from serving.evaluation.memory import RowPassages, Vocabulary, passages_of
from serving.evaluation.rows import QaPassage, QaRow
from serving.evaluation.sampling import balanced


def row(name: str, *texts: str, question: str = "Why?") -> QaRow:
    passages = tuple(QaPassage(text=text, title=f"{name} {place}") for place, text in enumerate(texts))
    return QaRow(id=name, question=question, passages=passages, answers=(), answerable=True)


ROWS = (
    row("a", "The heron eats frogs.", "The frog eats beetles at the lake."),
    row("b", "A lake of salt.", "Beetles everywhere.", "Frogs everywhere."),
)


def soon() -> Deadline:
    return Deadline.after(5, time.monotonic)


async def test_a_row_gives_its_own_passages_and_no_other() -> None:
    retriever = RowPassages(ROWS[0], Vocabulary.of(ROWS), "suite@1")
    found = await retriever.hybrid("What do herons and frogs eat in Peru?", 10, deadline=soon())
    assert sorted(passage.text for passage in found) == sorted(passage.text for passage in ROWS[0].passages)
    assert await retriever.version() == "suite@1"
    assert len(await retriever.lexical("frogs", 1, deadline=soon())) == 1


async def test_the_passage_with_the_rarer_words_stands_first() -> None:
    retriever = RowPassages(ROWS[0], Vocabulary.of(ROWS), "suite@1")
    found = await retriever.hybrid("Which heron eats frogs?", 2, deadline=soon())
    assert [passage.text for passage in found] == ["The heron eats frogs.", "The frog eats beetles at the lake."]
    assert found[0].score > found[1].score > 0


async def test_a_passage_without_a_shared_word_is_found_last() -> None:
    retriever = RowPassages(ROWS[1], Vocabulary.of(ROWS), "suite@1")
    found = await retriever.hybrid("Is it salt?", 3, deadline=soon())
    assert [passage.score > 0 for passage in found] == [True, False, False]


async def test_words_are_counted_over_the_whole_suite() -> None:
    retriever = RowPassages(ROWS[0], Vocabulary.of(ROWS), "suite@1")
    assert await retriever.frequencies(["frogs", "salt", "moon", "the"], deadline=soon()) == [3, 1, 0, 0]


def test_equal_passages_are_one() -> None:
    twice = QaPassage(text="Same.", title="T")
    assert len(passages_of(ROWS[0].model_copy(update={"passages": (twice, twice)}))) == 1


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.integers(1, 50), st.integers())
def test_a_sample_is_balanced_ordered_and_nested(labels: list[str], limit: int, seed: int) -> None:
    rows = list(enumerate(labels))
    chosen = balanced(rows, lambda each: each[1], limit, seed)
    assert len(chosen) == min(limit, len(rows))
    assert chosen == sorted(set(chosen))
    counts, there = Counter(label for _, label in chosen), Counter(labels)
    most = max(counts.values())
    # A label that has fewer than the others' share, less one, gave all that it has.
    assert all(counts[label] >= most - 1 or counts[label] == there[label] for label in there)
    assert set(balanced(rows, lambda each: each[1], max(1, limit - 1), seed)) <= set(chosen)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        balanced([1, 2], lambda each: each, 0, 0)
