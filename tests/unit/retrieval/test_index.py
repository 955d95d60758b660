from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.types import Passage
from serving.retrieval.dense import normalise
from serving.retrieval.index import HybridIndex
from serving.retrieval.records import decode, embedding_text, encode

from .conftest import Build, make_passage
from .fakes import FakeEmbedder

WHOLE = Passage(
    id="0123456789abcdef",
    text="Text with \0 control, emoji 🙂 and\nnew lines.",
    title="Title",
    url="https://x.y/z?a=b#c",
    source="a source",
    heading_path=("One", "", "Three"),
    source_path="docs/a.md",
    repo_path="owner/name",
    commit_sha="c0ffee",
    published_at=datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30))),
)


def test_every_field_of_a_passage_comes_back(build: Build, tmp_path: Path) -> None:
    plain = make_passage("Another passage, with nothing but a text.")
    build([WHOLE, plain, replace(WHOLE, id="1", published_at=datetime(2024, 1, 1, tzinfo=UTC))])
    index = HybridIndex.open(tmp_path)
    [found] = index.lexical("nothing", 5)
    assert found == plain.scored(found.score)
    assert {passage.id: passage for passage in index.lexical("emoji", 5)}[WHOLE.id].scored(0.0) == WHOLE
    unset = {field.name for field in fields(Passage) if getattr(WHOLE, field.name) in {None, "", ()}}
    assert unset == set(), "the passage of this test should use every field"


@given(
    # Offsets, not zones: a time in the hour that a zone repeats equals none of another zone.
    st.builds(
        Passage,
        id=st.text(),
        text=st.text(),
        published_at=st.none()
        | st.datetimes(timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))),
    )
)
def test_records_are_lossless(passage: Passage) -> None:
    assert decode(encode(passage)) == passage.scored(0.0)


def test_what_is_embedded_says_nothing_twice() -> None:
    assert embedding_text(make_passage("Text.", "A", ("A", "B"))) == "A\nB\nText."


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("itertools.chain", "itertools.chain"),
        ("ITERTOOLS.CHAIN()", "itertools.chain"),
        ("chain from itertools", "itertools.chain"),
        ("What does itertools.chain do?", "itertools.chain"),
        ("os.path.join", "os.path.join"),
        ("joining paths", "os.path.join"),
        ("__init__", "Data model"),
        ("init", "Data model"),
        ("snake_case_names", "Naming"),
        ("snake name", "Naming"),
        ("CamelCase", "Classes"),
        ("camelcase", "Classes"),
        ("camel", "Classes"),
        ("HTTP server", "Classes"),
        ("scikit-learn", "Installation"),
        ("3.11", "Installation"),
        ("ran, run, runs", "Bakery"),
        ("a cake from the bakery", "Bakery"),
    ],
)
def test_words_and_identifiers_are_found_whole_and_by_parts(index: HybridIndex, query: str, title: str) -> None:
    assert index.lexical(query, 3)[0].title == title


def test_a_title_counts_for_more_than_a_body(build: Build, tmp_path: Path) -> None:
    build([make_passage("All about walnut and pecan.", "Nuts"), make_passage("All about nuts and pecan.", "Walnut")])
    assert HybridIndex.open(tmp_path).lexical("walnut", 1)[0].title == "Walnut"


def test_scores_fall_and_the_limit_holds(index: HybridIndex, embedder: FakeEmbedder) -> None:
    vector = embedder(["path components"])[0]
    for found in (index.lexical("returns path components", 2), index.hybrid("path components", vector, 2, 5)):
        assert len(found) == 2
        assert found[0].score >= found[1].score > 0
    assert index.lexical("path", 0) == index.hybrid("path", vector, 0, 5) == []


def test_hybrid_finds_by_vector_what_has_no_word_in_common(index: HybridIndex, embedder: FakeEmbedder) -> None:
    bread = next(passage for passage in index.lexical("bread", 1))
    vector = embedder([embedding_text(bread)])[0] * 1000
    assert index.lexical("🙂", 5) == []
    [found] = index.hybrid("🙂", vector, 1, 5)
    assert found == bread.scored(1 / 6)
    assert index.hybrid("bread", vector, 1, 5)[0].score == pytest.approx(2 / 6)


@pytest.mark.parametrize(
    "query", ["", " ", "AND (", 'a "b', "title:x", "^2", "~", "[", "-", "\\", "\ud800", "🙂", "a*", "x" * 100_000]
)
def test_a_query_has_no_syntax(index: HybridIndex, query: str) -> None:
    index.lexical(query, 5)


def test_a_query_of_ten_thousand_words(index: HybridIndex) -> None:
    assert index.lexical("bread " + " ".join(f"word{number}" for number in range(10_000)), 5)[0].title == "Bakery"


@given(st.text(st.characters(codec=None)), st.integers(-1, 20))
def test_any_query_is_answered(index: HybridIndex, query: str, limit: int) -> None:
    assert len(index.lexical(query, limit)) <= max(limit, 0)
    assert len(index.hybrid(query, np.ones(32, dtype=np.float32), limit, 3)) <= max(limit, 0)


@pytest.mark.parametrize("vector", [np.ones(31), np.ones((1, 32)), np.full(32, np.nan)])
def test_a_vector_that_does_not_fit_is_refused(index: HybridIndex, vector: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"shape|finite"):
        index.hybrid("bread", vector, 1, 5)


def test_normalise() -> None:
    assert normalise(np.array([[3.0, 4.0], [0.0, 0.0]])) == pytest.approx(np.array([[0.6, 0.8], [0.0, 0.0]]))
