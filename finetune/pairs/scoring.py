"""Scores of held-out cases: those of the weights, and those of what is served without any."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from finetune.pairs.bm25 import Bm25
from finetune.pairs.cases import ClaimCase, QuestionCase
from finetune.pairs.ranking import document
from finetune.pairs.settings import PairSettings, Task
from finetune.training import say
from models.embedder import Embedder
from models.encoder import PairEncoder
from models.head_encoder import open_pairs
from models.pairs import Order
from serving.answer.guards.rejecting import Reading, reject
from serving.answer.prompt import premise
from serving.answer.reference import OverlapVerifier, RareWordRelevance
from serving.answer.seams import Pair
from serving.answer.text import stem
from serving.answer.types import Claim, Deadline, Passage, Span
from serving.evaluation.estimates import Floats
from serving.evaluation.rows import RerankRow

_AT_ONCE = 256
_FOREVER = Deadline.after(10**6, time.monotonic)
OVERLAP_THRESHOLD = 0.85


class Weights:
    """The scores that trained weights give, as the product computes them."""

    def __init__(self, settings: PairSettings, folder: Path, base: Path, task: Task) -> None:
        order: Order = "document_first" if task == "verifier" else "settled_first"
        heads = base if settings.shape == "heads" else None
        threads = settings.threads or 2
        self.encoder: PairEncoder = open_pairs(
            folder, order=order, head=task, base=heads, threads=threads, device=settings.device
        )
        self.pairs = 0
        self.seconds = 0.0

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """A score for each (document, settled text)."""
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at][0]))
        scores = [0.0] * len(pairs)
        began = time.monotonic()
        for start in range(0, len(order), _AT_ONCE):
            chosen = order[start : start + _AT_ONCE]
            for at, score in zip(chosen, self.encoder.compute([pairs[at] for at in chosen]), strict=True):
                scores[at] = score
            if start and start % (_AT_ONCE * 20) == 0:
                say(f"{start} of {len(pairs)} pairs scored")
        self.pairs += len(pairs)
        self.seconds += time.monotonic() - began
        return scores

    def claims(self, cases: Sequence[ClaimCase]) -> Floats:
        pairs = [(document, case.claim) for case in cases for document in case.documents]
        return best_of_documents(cases, self.score(pairs))

    def questions(self, cases: Sequence[QuestionCase]) -> Floats:
        return np.array(self.score([(offered(case), case.question) for case in cases]))

    def rankings(self, rows: Sequence[RerankRow]) -> list[dict[str, float]]:
        pairs = [(document(passage), row.query) for row in rows for passage in row.passages]
        scores = iter(self.score(pairs))
        return [{str(place): next(scores) for place in range(len(row.passages))} for row in rows]


def offered(case: QuestionCase) -> str:
    """The sentence as a relevance judge reads it: under its passage's title."""
    return premise(Passage(id="", title=case.passage.title, text=case.sentence))


def best_of_documents(cases: Sequence[ClaimCase], scores: Sequence[float]) -> Floats:
    given = iter(scores)
    return np.array([max(next(given) for _ in case.documents) for case in cases])


def overlap(cases: Sequence[ClaimCase]) -> Floats:
    pairs = [Pair(document, case.claim) for case in cases for document in case.documents]
    verdicts = asyncio.run(OverlapVerifier(OVERLAP_THRESHOLD).verify(pairs, deadline=_FOREVER))
    return best_of_documents(cases, [verdict.score for verdict in verdicts])


def guarded(cases: Sequence[ClaimCase]) -> Floats:
    """1 where no guard objects to the claim over some document of the case, else 0."""
    return np.array(
        [float(any(reject(case.claim, Reading(text)) is None for text in case.documents)) for case in cases]
    )


def rare_words(cases: Sequence[QuestionCase]) -> Floats:
    """1 where the rare-word reference lets the sentence answer the question. Words are counted in all passages."""
    return np.array(asyncio.run(_rare_words(cases)), dtype=np.float64)


async def _rare_words(cases: Sequence[QuestionCase]) -> list[bool]:
    texts = {premise(case.passage) for case in cases}
    held = Counter(word for text in texts for word in {stem(word) for word in text.casefold().split()})

    async def frequencies(words: Sequence[str], *, deadline: Deadline) -> list[int]:
        del deadline  # counted already
        return [held[stem(word)] for word in words]

    judge = RareWordRelevance(frequencies)
    found: list[bool] = []
    for case in cases:
        claim = Claim(case.sentence, Span(0, len(case.sentence.encode())), chunks=(0,))
        found += await judge.relevant(case.question, [claim], [case.passage], deadline=_FOREVER)
    return found


def bm25(rows: Sequence[RerankRow]) -> list[dict[str, float]]:
    judge = Bm25([document(passage) for row in rows for passage in row.passages])
    return [_placed(judge.score(row.query, [document(passage) for passage in row.passages])) for row in rows]


def cosines(rows: Sequence[RerankRow], base: Path, threads: int) -> list[dict[str, float]]:
    """The cosine of the embedder's vectors, which is what reranks without a reranker."""
    embedder: Any = Embedder(base, threads=threads)
    texts = list(dict.fromkeys(document(passage) for row in rows for passage in row.passages))
    at = {text: place for place, text in enumerate(texts)}
    vectors = np.concatenate([embedder.encode(texts[start : start + 512]) for start in range(0, len(texts), 512)])
    asked = embedder.encode([row.query for row in rows], query=True)
    embedder.close()
    return [
        _placed([float(vectors[at[document(passage)]] @ asked[number]) for passage in row.passages])
        for number, row in enumerate(rows)
    ]


def _placed(scores: Sequence[float]) -> dict[str, float]:
    return {str(place): score for place, score in enumerate(scores)}


def logits(scores: Floats) -> Floats:
    """What the scores are the sigmoid of."""
    clipped = np.clip(scores, 1e-9, 1 - 1e-9)
    return np.log(clipped / (1 - clipped))
