"""What is done with one row of each kind: a question is asked, a claim checked, passages ranked, a query routed."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ray.serve.handle import DeploymentHandle

from serving.answer.engine import Engine
from serving.answer.guards.rejecting import Reading, reject
from serving.answer.prompt import CONTROL_TOKENS, premise
from serving.answer.reference import RareWordRelevance
from serving.answer.seams import Classifier, Pair, Parts
from serving.answer.types import Deadline, Passage
from serving.answer.wire import Answer, Versions
from serving.cli import client
from serving.cli.client import ServerError
from serving.cli.evaluating.cache import CachedSynthesizer, OutputCache
from serving.cli.evaluating.errors import RunStoppedError
from serving.cli.evaluating.local import NO_HANDLES, LocalProduct
from serving.deployments.classifier import made_as_set
from serving.deployments.handles import RemoteReranker, RemoteVerifier
from serving.deployments.router import parts_of
from serving.evaluation.memory import RowPassages, Vocabulary, passages_of
from serving.evaluation.records import Asked, Checked, Ranked, Sent
from serving.evaluation.rows import GroundingRow, QaRow, RerankRow, RouteRow
from serving.settings import Settings


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """What the engine is made of in this process, for each row anew: its retriever holds that row's passages."""

    settings: Settings
    parts: Parts
    synthesizer: CachedSynthesizer
    control_tokens: tuple[str, ...]
    versions: Versions

    @classmethod
    async def over(cls, product: LocalProduct, cache: OutputCache) -> LocalEngine:
        settings, names = product.settings, await product.names()
        parts, counter = parts_of(settings, {**NO_HANDLES, **product.handles})
        shaping = f"{names['synthesizer']} {settings.models.synthesizer.model_dump_json()}"
        synthesizer = CachedSynthesizer(parts.synthesizer, cache, shaping)
        known = {name: names[name] for name in ("synthesizer", "reranker", "verifier")}
        return cls(
            settings=settings,
            parts=replace(parts, synthesizer=synthesizer),
            synthesizer=synthesizer,
            control_tokens=(*CONTROL_TOKENS, *counter.control_tokens),
            versions=Versions(settings=settings.version, router=made_as_set(settings).name, **known),
        )


class RowAsker:
    """Asks each row's question over that row's passages and nothing else."""

    def __init__(self, engine: LocalEngine, vocabulary: Vocabulary, *, suite: str, timeout_s: float) -> None:
        self._engine = engine
        self._vocabulary = vocabulary
        self._suite = suite
        self._timeout_s = timeout_s

    async def __call__(self, row: QaRow) -> Asked:
        made = self._engine
        retriever = RowPassages(row, self._vocabulary, self._suite)
        parts = replace(made.parts, retriever=retriever)
        if made.settings.models.relevance.kind == "rare_words":
            parts = replace(parts, relevance=RareWordRelevance(retriever.frequencies))
        engine = Engine(
            parts,
            made.settings.answer,
            made.versions,
            clock=time.monotonic,
            now=lambda: datetime.now(UTC),
            nonce=lambda: _nonce(row),
            control_tokens=made.control_tokens,
        )
        # Two questions may be the same one in two rows: an id of their own keeps what they saved apart.
        request_id = f"{row.id}-{secrets.token_hex(4)}"
        began = time.monotonic()
        answer = await engine.ask(
            row.question, request_id=request_id, deadline=Deadline.after(self._timeout_s, time.monotonic)
        )
        saved_s = made.synthesizer.saved_s.pop(request_id, None)
        return Asked(
            id=row.id,
            answer=answer if saved_s is None else _as_if_generated(answer, saved_s),
            reused=saved_s is not None,
            ms=(time.monotonic() - began) * 1e3,
        )


def _nonce(row: QaRow) -> str:
    # The same in each run, so that equal prompts are equal; a suite's passages are not written against this process.
    said = "\0".join((row.id, row.question, *(passage.id for passage in passages_of(row))))
    return hashlib.sha256(said.encode()).hexdigest()[:8]


def _as_if_generated(answer: Answer, saved_s: float) -> Answer:
    spent = answer.timings_ms
    longer = {"synthesize": spent.synthesize + saved_s * 1e3, "total": spent.total + saved_s * 1e3}
    return answer.model_copy(update={"timings_ms": spent.model_copy(update=longer)})


class ServerAsker:
    """Asks a deployment, which answers from its own index."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url
        self._timeout_s = timeout_s

    async def __call__(self, row: QaRow) -> Asked:
        began = time.monotonic()
        try:
            answer = await asyncio.to_thread(client.ask, self._url, row.question, self._timeout_s)
        except ServerError as error:
            if not await asyncio.to_thread(client.ready, self._url):
                raise RunStoppedError(f"{error}; finished cases are kept, run the same command again") from error
            return Asked(id=row.id, error=str(error), ms=(time.monotonic() - began) * 1e3)
        return Asked(id=row.id, answer=answer, ms=(time.monotonic() - began) * 1e3)


class Checker:
    """The gate's two halves on a claim: guards, then the configured verifier."""

    def __init__(self, verifier: DeploymentHandle, timeout_s: float) -> None:
        self._verifier = RemoteVerifier(verifier)
        self._timeout_s = timeout_s

    async def __call__(self, row: GroundingRow) -> Checked:
        began = time.monotonic()
        deadline = Deadline.after(self._timeout_s, time.monotonic)
        rejection = reject(row.claim, Reading(row.document))
        score = 0.0
        if rejection is None:
            verdicts = await self._verifier.verify([Pair(row.document, row.claim)], deadline=deadline)
            score = verdicts[0].score
        rejected = rejection.reason.value if rejection else ""
        return Checked(id=row.id, score=score, rejected=rejected, ms=(time.monotonic() - began) * 1e3)


class Ranker:
    def __init__(self, reranker: DeploymentHandle, timeout_s: float) -> None:
        self._reranker = RemoteReranker(reranker)
        self._timeout_s = timeout_s

    async def __call__(self, row: RerankRow) -> Ranked:
        began = time.monotonic()
        documents = [premise(Passage(id="", text=each.text, title=each.title)) for each in row.passages]
        deadline = Deadline.after(self._timeout_s, time.monotonic)
        scores = await self._reranker.score(row.query, documents, deadline=deadline)
        return Ranked(id=row.id, scores=tuple(scores), ms=(time.monotonic() - began) * 1e3)


class Sender:
    def __init__(self, classifier: Classifier, timeout_s: float) -> None:
        self._classifier = classifier
        self._timeout_s = timeout_s

    async def __call__(self, row: RouteRow) -> Sent:
        began = time.monotonic()
        routing = await self._classifier.classify(row.query, deadline=Deadline.after(self._timeout_s, time.monotonic))
        return Sent(id=row.id, route=routing.route, cue=routing.cue, ms=(time.monotonic() - began) * 1e3)
