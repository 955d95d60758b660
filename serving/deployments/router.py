"""The Router deployment: every call passes its gate. It holds classifier, monitor, engine and all handles."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from ray import serve
from ray.serve.handle import DeploymentHandle

from models.catalog import Catalog
from models.language import NgramLanguage
from models.tokens import EstimatingCounter, TokenizerCounter
from serving.answer.declining import LANGUAGES
from serving.answer.direct import CheckedText, Embedded, Reranked
from serving.answer.engine import Engine
from serving.answer.errors import InvalidQuestionError, UnavailableError
from serving.answer.escalation import EscalationMonitor
from serving.answer.events import Event, Finished
from serving.answer.gate import Budget, Gate, Kind, WhenAgenticIsSpent
from serving.answer.prompt import CONTROL_TOKENS, messages
from serving.answer.reference import RareWordRelevance
from serving.answer.relevance import ScoredRelevance
from serving.answer.seams import Classifier, Generation, Pair, Parts, Relevance
from serving.answer.types import Passage, Route, Routing
from serving.answer.wire import Answer, Versions
from serving.deployments.base import WARM_UP_S, deadline_in, replica_name
from serving.deployments.classifier import ReplaceableClassifier
from serving.deployments.direct import DirectCalls
from serving.deployments.gaps import Gaps
from serving.deployments.handles import (
    RemoteRelevance,
    RemoteReranker,
    RemoteRetriever,
    RemoteSynthesizer,
    RemoteVerifier,
    translate,
)
from serving.deployments.logs import join_serve_log
from serving.deployments.replacing import Replaceable, Report
from serving.gaps.records import GapPage, GapQuery
from serving.settings import Settings

log = logging.getLogger(__name__)

RETRY_S = 2.0


def counter_of(settings: Settings) -> TokenizerCounter | EstimatingCounter:
    """What counts tokens as the model that writes does, or estimates them when its tokenizer is not here."""
    reference = settings.models.synthesizer.local_model
    return TokenizerCounter(Catalog(settings.home).locate(reference)) if reference else EstimatingCounter()


def relevance_of(settings: Settings, verifier: DeploymentHandle, retriever: RemoteRetriever) -> Relevance:
    """What judges whether a claim bears on the question: the model beside the verifier, or rare words."""
    chosen = settings.models.relevance
    if chosen.kind == "pair":
        return ScoredRelevance(RemoteRelevance(verifier), threshold=chosen.threshold)
    return RareWordRelevance(retriever.frequencies)


def parts_of(
    settings: Settings, handles: Mapping[str, DeploymentHandle], classifier: Classifier | None = None
) -> tuple[Parts, TokenizerCounter | EstimatingCounter]:
    """What the engine is made of, over the handles of the deployments, and the counter with its model's tokens."""
    counter = counter_of(settings)
    retriever = RemoteRetriever(handles["retriever"])
    parts = Parts(
        classifier=classifier or ReplaceableClassifier(settings),
        retriever=retriever,
        reranker=RemoteReranker(handles["reranker"]),
        synthesizer=RemoteSynthesizer(handles["synthesizer"]),
        verifier=RemoteVerifier(handles["verifier"]),
        relevance=relevance_of(settings, handles["verifier"], retriever),
        counter=counter,
        language=NgramLanguage(LANGUAGES),
    )
    return parts, counter


def _shares(settings: Settings) -> dict[Kind, Budget]:
    """What one tenant may hold of each kind that has such a limit."""
    share = settings.gate.direct_per_tenant
    return {} if share is None else {Kind.DIRECT: Budget(**share.model_dump())}


@serve.deployment(name="Router")
class RouterDeployment:
    async def __init__(self, settings: Settings, **handles: DeploymentHandle) -> None:  # type: ignore[misc]  # Serve awaits it
        join_serve_log()
        self._settings = settings
        self._handles = handles
        classifier = ReplaceableClassifier(settings)
        self._replaceable = Replaceable({"classifier": classifier.part}, {"classifier": classifier.take})
        self._parts, self._counter = parts_of(settings, handles, classifier)
        gate = settings.gate
        self._gate = Gate(
            {kind: Budget(**getattr(gate, kind.value).model_dump()) for kind in Kind},
            time.monotonic,
            tenants=_shares(settings),
        )
        self._direct = DirectCalls(handles, self._gate, wait_s=gate.direct_wait_s)
        self._monitor = EscalationMonitor(
            time.monotonic, window_s=gate.escalation_window_s, alarm_above=gate.escalation_alarm
        )
        self._warm: dict[str, bool] = dict.fromkeys((*handles, "index", "router"), False)
        self._engine: Engine | None = None
        self._gaps = Gaps(settings, handles["embedder"])
        self._warming = asyncio.create_task(self._warm_up())

    async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Answer:
        """Answers one question: its events, folded."""
        async with aclosing(self.events(question, request_id=request_id, timeout_s=timeout_s)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.answer
        raise AssertionError("the events of a question end with Finished; this is a bug")

    async def events(self, question: str, *, request_id: str, timeout_s: float) -> AsyncGenerator[Event, None]:
        """The events of one question, inside a permit of its route's kind. The permit is given back before the last.

        Call it with ``stream=True``: Serve reads it ahead, however slowly its caller does.
        """
        engine = self._ready_engine()
        deadline = deadline_in(timeout_s)
        routing = await engine.route(question, deadline=deadline)
        self._watch(routing)
        window = self._settings.answer.window_tokens
        finished: Finished | None = None
        async with self._gate.admit(
            Kind(routing.route.value),
            ceilings={Kind.SEARCH: 0, Kind.SINGLE_PASS: window, Kind.AGENTIC: window},
            wait_s=min(self._settings.gate.wait_s, deadline.remaining()),
            when_spent=WhenAgenticIsSpent(self._settings.gate.when_agentic_is_spent),
        ) as permit:
            granted = Route(permit.kind.value)
            async with aclosing(
                engine.events(question, request_id=request_id, deadline=deadline, routing=routing, granted=granted)
            ) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        finished = event
                        permit.settle(event.answer.usage.prompt_tokens + event.answer.usage.completion_tokens)
                    else:
                        yield event
        if finished is not None:
            self._gaps.record(question, finished.answer)
            yield finished

    async def search(self, query: str, limit: int, *, timeout_s: float) -> list[Passage]:
        """BM25 results, inside a permit of kind ``search``. No model is touched."""
        if not query.strip():
            raise InvalidQuestionError("the query is empty; send some text in `query`")
        deadline = deadline_in(timeout_s)
        wait_s = min(self._settings.gate.wait_s, deadline.remaining())
        async with self._gate.permit(Kind.SEARCH, tokens=0, wait_s=wait_s):
            return list(await self._parts.retriever.lexical(query, limit, deadline=deadline))

    async def rerank(
        self,
        query: str,
        documents: list[str],
        *,
        timeout_s: float,
        tenant: str | None = None,
        long_document: str | None = None,
    ) -> Reranked:
        """A score for each document, inside a permit of kind ``direct``; so are the next two."""
        deadline = deadline_in(timeout_s)
        return await self._direct.rerank(
            query, documents, long_document=long_document, tenant=tenant, deadline=deadline
        )

    async def check(
        self,
        text: str,
        facts: list[Passage],
        *,
        timeout_s: float,
        tenant: str | None = None,
        threshold: float | None = None,
    ) -> CheckedText:
        """Which sentences of a text the facts prove. ``threshold`` is the least score of a citation; as set."""
        floor = self._settings.answer.confidence_floor if threshold is None else threshold
        return await self._direct.check(text, facts, floor=floor, tenant=tenant, deadline=deadline_in(timeout_s))

    async def embed(
        self, texts: list[str], *, timeout_s: float, tenant: str | None = None, query: bool = False
    ) -> Embedded:
        return await self._direct.embed(texts, query=query, tenant=tenant, deadline=deadline_in(timeout_s))

    async def gaps(self, query: GapQuery) -> GapPage:
        """One page of the knowledge gaps."""
        return await self._gaps.page(query)

    async def __del__(self) -> None:
        await self._gaps.close()

    async def ready(self) -> dict[str, bool]:
        """Each part, and whether it has answered a warm-up."""
        return dict(self._warm)

    async def calls(self) -> dict[str, int]:
        """How often each model was asked since its replica started."""
        models = [name for name in self._handles if name != "retriever"]
        return {name: await self._handles[name].calls.remote() for name in models}

    async def reconfigure(self, user_config: Mapping[str, Any]) -> None:
        """Its ``user_config``: ``classifier``, a reference to a query classifier, or null for the rules."""
        await self._replaceable.reconfigure(user_config)

    async def report(self) -> Report:
        """Which replica this is, and what its parts are."""
        return Report(replica_name(), self._replaceable.parts)

    def _ready_engine(self) -> Engine:
        if self._engine is None:
            cold = ", ".join(name for name, warm in self._warm.items() if not warm)
            raise UnavailableError(f"still warming up: {cold}; ask again when /readyz says so", retry_after_s=RETRY_S)
        return self._engine

    def _watch(self, routing: Routing) -> None:
        self._monitor.record(routing.route)
        if self._monitor.alarmed:
            kind = routing.cue.split(":")[0]  # what follows quotes the question
            log.warning("escalation rate %.2f is above its alarm; the last cue was %s", self._monitor.rate(), kind)

    async def _warm_up(self) -> None:
        """Asks every part something, until each has answered; then questions are taken."""
        passage = Passage(id="warm-up", text="A list keeps its items in order.", title="list")
        prompt = messages("What does a list keep?", [(1, passage)], secrets.token_hex(4))
        probe = Generation(prompt, f"warm-up-{secrets.token_hex(4)}", max_tokens=4, grammar="(?:yes|no)")

        async def write() -> None:
            async for _ in self._parts.synthesizer.generate(probe, deadline=deadline_in(WARM_UP_S)):
                pass

        asks: dict[str, Callable[[], Awaitable[Any]]] = {
            "embedder": lambda: self._handles["embedder"].embed.remote(["list"], timeout_s=WARM_UP_S),
            "reranker": lambda: self._parts.reranker.score("list", [passage.text], deadline=deadline_in(WARM_UP_S)),
            "verifier": lambda: self._parts.verifier.verify(
                [Pair(passage.text, "A list keeps order.")], deadline=deadline_in(WARM_UP_S)
            ),
            "synthesizer": write,
            "retriever": lambda: self._parts.retriever.lexical("list", 1, deadline=deadline_in(WARM_UP_S)),
            "index": self._parts.retriever.version,
        }
        await asyncio.gather(*(self._warm_one(name, ask) for name, ask in asks.items()))
        await self._warm_one("router", self._open)

    async def _open(self) -> None:
        """Makes the engine, once all parts can say what they are: from now on questions are taken."""
        self._engine = Engine(
            self._parts,
            self._settings.answer,
            await self._versions(),
            clock=time.monotonic,
            now=lambda: datetime.now(UTC),
            nonce=lambda: secrets.token_hex(4),
            control_tokens=(*CONTROL_TOKENS, *self._counter.control_tokens),
        )

    async def _warm_one(self, name: str, ask: Callable[[], Awaitable[Any]]) -> None:
        while not self._warm[name]:
            try:
                await ask()
                self._warm[name] = True
            except Exception as error:
                log.warning("%s did not answer its warm-up: %s", name, translate(error, name))
                await asyncio.sleep(RETRY_S)

    async def _versions(self) -> Versions:
        names = {name: await self._handles[name].name.remote() for name in ("synthesizer", "reranker", "verifier")}
        # A part that can be replaced says with each result what it is: these are for parts that say nothing.
        return Versions(settings=self._settings.version, router=self._replaceable.parts["classifier"].version, **names)
