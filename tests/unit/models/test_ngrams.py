"""Hashed n-grams: the same everywhere, bounded, and of any text."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ngrams import Grams, fold

GRAMS = Grams(bits=12)
# Any Python string, lone surrogates too: JSON can carry them.
TEXTS = st.text(st.characters(codec=None, exclude_categories=())) | st.text("aA ?.é\u0301\ud800中", max_size=700)


def buckets(text: str, grams: Grams = GRAMS) -> list[int]:
    return grams.hashed(text).buckets.tolist()


@given(TEXTS)
def test_any_text_has_ngrams_inside_the_buckets(text: str) -> None:
    found = GRAMS.hashed(text)
    assert 0 < found.letters < len(found.buckets) == len(found.weights)
    assert found.buckets.min() >= 0
    assert found.buckets.max() < 2**GRAMS.bits
    assert np.isfinite(found.weights).all()
    assert (found.weights > 0).all()


@given(TEXTS)
def test_no_kind_of_ngram_outweighs_another_by_its_number(text: str) -> None:
    found = GRAMS.hashed(text)
    letters, rest = found.weights[: found.letters], found.weights[found.letters :]
    assert float(letters @ letters) <= 1.0 + 1e-4
    assert float(rest @ rest) <= 1.0 + GRAMS.word_weight**2 + 1e-4


@given(st.text("abc XYZ", max_size=40))
def test_case_and_spaces_say_nothing(text: str) -> None:
    assert buckets(text) == buckets(text.upper()) == buckets(f"  {text.replace(' ', '  ')}\n")


@given(st.text("abc ?", max_size=40), st.sampled_from(["?", "??", ".", " !"]))
def test_the_marks_at_the_end_are_read_as_characters_alone(text: str, marks: str) -> None:
    bare, marked = GRAMS.hashed(text), GRAMS.hashed(text + marks)
    assert bare.buckets[bare.letters :].tolist() == marked.buckets[marked.letters :].tolist()


def test_a_mark_at_the_end_is_seen() -> None:
    assert buckets("numpy") != buckets("numpy?")


def test_a_skeleton_is_of_no_topic() -> None:
    only = Grams(words=(30, 30), bits=16)
    about = [only.hashed(f"which band was formed first, {a} or {b}") for a, b in (("blur", "pulp"), ("abba", "muse"))]
    assert about[0].buckets[about[0].letters :].tolist() == about[1].buckets[about[1].letters :].tolist()
    other = only.hashed("which band did form first and blur or pulp")
    assert other.buckets[other.letters :].tolist() != about[0].buckets[about[0].letters :].tolist()


def test_only_the_two_ends_of_a_long_text_are_read() -> None:
    middle = "m" * 90_000
    assert buckets(f"{'a ' * 600}{middle}{' z' * 600}") == buckets(f"{'a ' * 600}{middle[:-7]}n{' z' * 600}")
    assert buckets(f"{'a ' * 600}{middle}{' z' * 600}") != buckets(f"{'a ' * 600}{middle}{' y' * 600}")
    assert len(fold("x" * 100_000, 384, 128)) == 513


@pytest.mark.parametrize("text", ["x" * 100_000, "\u0301" * 100_000, "a " * 50_000, "？" * 100_000, "\ufdfa" * 100_000])
def test_a_long_text_takes_little_more_time_than_one_of_a_page(text: str) -> None:
    def spent(some: str) -> float:
        began = time.perf_counter()
        for _ in range(5):
            GRAMS.hashed(some)
        return time.perf_counter() - began

    page = text[:4_000]
    spent(page)
    assert min(spent(text) for _ in range(3)) < 20 * max(1e-3, min(spent(page) for _ in range(3)))


def test_another_process_hashes_alike() -> None:
    text = "Who wrote “Straße”, A or B?"
    program = f"from models.ngrams import Grams; print(Grams(bits=12).hashed({text!r}).buckets.tolist())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(buckets(text))


def test_the_hash_is_the_one_that_shipped_weights_were_made_with() -> None:
    found = Grams().hashed("who is ada")
    assert [int(found.buckets[0]), int(found.buckets[found.letters]), int(found.buckets[-1])] == [218741, 190354, 5567]
