"""Which questions are one, by their words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.gaps.likeness import canonical, embedded_form, question_hash, told_apart
from serving.gaps.vectors import nearest


@given(st.text())
def test_spelling_does_not_count(text: str) -> None:
    assert canonical(f"  {text.upper().lower()} ??") == canonical(text.upper().lower())
    assert canonical(canonical(text)) == canonical(text)
    assert len(question_hash(text)) == 64
    assert question_hash(canonical(text)) == question_hash(text)
    assert embedded_form(text).endswith("?")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is the population of France in 2010?", "What is the population of France in 2011?"),
        ("Can dogs eat chocolate?", "Can dogs not eat chocolate?"),
        ("Why doesn't it start?", "Why does it start?"),
        ("What is the highest temperature?", "What is the lowest temperature?"),
        ("How do I open a file in Python?", "How do I close a file in Python?"),
        ("When did Germany invade Poland?", "When did Poland invade Germany?"),
        ("Where did Harold II die?", "Who killed Harold II?"),
        ("Which court argued that the treaty did not?", "Which court did not argue that the treaty did not?"),
    ],
)
def test_a_word_that_turns_a_question_makes_two(one: str, other: str) -> None:
    assert told_apart(one, other)
    assert told_apart(other, one)
    assert not told_apart(one, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What does itertools.chain do?", "what is itertools.chain for"),
        ("How do I reverse a list in Python?", "How can I reverse a Python list?"),
        ("When was the Eiffel Tower built?", "In what year was the Eiffel Tower constructed?"),
        ("What is the highest court in the European Union?", "Which court is the highest in the European Union?"),
        ("Wie hoch ist der Mount Everest?", "Wie hoch ist der Everest?"),
    ],
)
def test_other_words_for_the_same_do_not(one: str, other: str) -> None:
    assert not told_apart(one, other)
    assert not told_apart(other, one)


@given(st.text(), st.text())
def test_being_told_apart_is_mutual(one: str, other: str) -> None:
    assert told_apart(one, other) == told_apart(other, one)


def test_the_nearest_come_closest_first_down_to_the_threshold() -> None:
    angles = np.radians([0, 40, 10, 90])
    known = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    vector = np.array([1, 0], np.float32)
    assert nearest(vector, known, 0.7) == [0, 2, 1]
    assert nearest(vector, known, 0.9) == [0, 2]
    assert nearest(vector, known[:0], 0.9) == []
