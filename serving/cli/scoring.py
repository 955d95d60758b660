"""Questions scored in this process as the product scores them: retrieved and reranked by its settings, without Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from models.catalog import Catalog
from serving.answer import context, prompt
from serving.answer.errors import AnswerError
from serving.answer.policy import Policy
from serving.answer.seams import Reranker, Retriever
from serving.answer.types import Clock, Deadline, Passage
from serving.cli.console import Steps
from serving.cli.indexing import load_embedder
from serving.evaluation.rows import AnswerabilityRow
from serving.retrieval.changes import Given
from serving.retrieval.documents import Document
from serving.retrieval.index import HybridIndex
from serving.retrieval.records import passage_id
from serving.retrieval.retriever import IndexRetriever
from serving.settings import Settings

if TYPE_CHECKING:  # torch takes its time to import
    from models.embedder import Embedder
    from models.reranker import CrossEncoderReranker, EmbeddingReranker

PATIENCE = 3
"""So many failures in a row mean that something is broken, not the question."""

QUESTION_S = 300.0
"""How long one question may take: a model that is loaded and not stuck is done by then on the slowest machine."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """What scores questions. ``index`` is the generation searched, ``passages`` its size, ``name`` the reranker's."""

    retriever: Retriever
    reranker: Reranker
    index: str
    passages: int
    name: str


@dataclass(frozen=True, slots=True)
class Case:
    """One question's best passage by the reranker, whose ``score`` is what ``answer.score_floor`` is compared with.

    A question for which nothing is found has neither, and is lost without any floor.
    """

    id: str
    question: str
    answerable: bool
    score: float | None
    passage_id: str | None = None
    passage_title: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that could not be scored, and why."""

    id: str
    question: str
    message: str


async def best_passage(scorer: Scorer, question: str, policy: Policy, deadline: Deadline) -> Passage | None:
    """The passage that a rising floor takes last, scored as the floor sees it: without the share of retrieval."""
    found = await scorer.retriever.hybrid(question, policy.candidates, deadline=deadline)
    scores = await scorer.reranker.score(question, [prompt.premise(passage) for passage in found], deadline=deadline)
    ranked = context.rank(found, scores, retrieval_weight=0.0, floor=0.0)
    return ranked[0] if ranked else None


async def score_all(
    scorer: Scorer,
    rows: Sequence[AnswerabilityRow],
    policy: Policy,
    *,
    clock: Clock,
    tell: Callable[[Case | Failure], None],
) -> bool:
    """Scores questions one after the other and tells each as it is known. False when too many in a row failed."""
    in_a_row = 0
    for number, row in enumerate(rows, start=1):
        name = row.id or str(number)
        try:
            best = await best_passage(scorer, row.question, policy, Deadline.after(QUESTION_S, clock))
        except AnswerError as error:
            in_a_row += 1
            tell(Failure(name, row.question, error.message))
            if in_a_row == PATIENCE:
                return False
            continue
        in_a_row = 0
        seen = (None, None, None) if best is None else (best.score, best.id, best.title)
        tell(Case(name, row.question, row.answerable, *seen))
    return True


def own_passages(rows: Sequence[AnswerabilityRow]) -> list[Passage]:
    """The passages of all rows, whole and each once; a title counts as a source."""
    found = {
        (passage.title, passage.text): Passage(
            id=passage_id(passage.title, None, (), passage.text),
            text=passage.text,
            title=passage.title,
            source=passage.title,
        )
        for row in rows
        for passage in row.passages
    }
    return list(found.values())


@contextmanager
def opened(settings: Settings, passages: Sequence[Passage] | None, steps: Steps) -> Iterator[Scorer]:
    """Loads the models and opens the index; with ``passages``, indexes those in a folder that is gone afterwards.

    Raises ``AnswerError`` where the index or the weights are missing.
    """
    steps.say("loading the models")
    with (
        closing(load_embedder(settings)) as embedder,
        _reranker(settings, embedder) as reranker,
        _index(settings, embedder, passages, steps) as index,
    ):
        retriever = IndexRetriever(
            lambda: index,
            partial(embedder.embed, query=True),
            words=settings.retrieval.lexical,
            vectors=settings.retrieval.dense,
        )
        yield Scorer(retriever, reranker, index.generation, len(index), reranker.name)


@contextmanager
def _reranker(settings: Settings, embedder: Embedder) -> Iterator[CrossEncoderReranker | EmbeddingReranker]:
    from models.reranker import CrossEncoderReranker, EmbeddingReranker

    chosen = settings.models.reranker
    if chosen.kind == "embedding":
        yield EmbeddingReranker(embedder, embedder.name)
        return
    from models.head_encoder import open_pairs

    catalog = Catalog(settings.home)
    folder = catalog.locate(str(chosen.model))
    encoder = open_pairs(
        folder,
        order="settled_first",
        head="reranker",
        base=catalog.base_of(folder),
        threads=chosen.threads,
        max_tokens=chosen.max_tokens,
        batch_tokens=chosen.batch_tokens,
        device=chosen.device,
        memory_share=chosen.gpu_memory_share,
        dtype=chosen.dtype,
        long_document=chosen.long_document,
        backend=chosen.backend,
        home=settings.home,
    )
    with closing(CrossEncoderReranker(encoder)) as reranker:
        yield reranker


@contextmanager
def _index(
    settings: Settings, embedder: Embedder, passages: Sequence[Passage] | None, steps: Steps
) -> Iterator[HybridIndex]:
    chosen = settings.retrieval
    searched = partial(
        HybridIndex.open,
        device=chosen.device,
        scratch_bytes=chosen.gpu_scratch_mib * 2**20,
        embedder_name=embedder.name,
    )
    if passages is None:
        yield searched(settings.index_path)
        return
    from serving.retrieval.embedding import embed_missing
    from serving.retrieval.updating import update

    steps.say(f"indexing the {len(passages)} passages of the rows, for this run alone")
    began = time.perf_counter()

    def progress(done: int, total: int) -> None:
        rate = done / max(1e-9, time.perf_counter() - began)
        steps.every(f"indexed {done} of {total} passages ({rate:.0f}/s, {(total - done) / rate:.0f} s left)")

    with TemporaryDirectory(prefix="answer-calibrate-") as folder:
        given = Given(
            "rows", (Document("", each.title, each.source, place=each.id, ready=(each,)) for each in passages)
        )
        now, root = datetime.now(UTC), Path(folder)
        update(root, [given], embedder_name=embedder.name, now=now, progress=lambda _documents, _passages: None)
        embed_missing(root, embedder.encode, embedder_name=embedder.name, progress=progress)
        yield searched(root)
