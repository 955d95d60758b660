"""The Gateway deployment: the HTTP API in front of the Router."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from serving.answer.direct import CheckedText, Embedded, Reranked
from serving.answer.errors import AnswerError
from serving.answer.events import Event, Finished
from serving.answer.types import Passage
from serving.answer.wire import Answer
from serving.deployments.base import deadline_in
from serving.deployments.handles import call, stream
from serving.deployments.logs import adopt, join_serve_log
from serving.gaps.records import GapPage, GapQuery
from serving.gateway.answer_log import AnswerLog
from serving.gateway.backend import LongDocument
from serving.gateway.http import create_api
from serving.settings import Settings


class RouterBackend:
    """The gateway's backend over the Router's handle."""

    def __init__(self, router: DeploymentHandle, answer_log: AnswerLog) -> None:
        self._router = router
        self._answer_log = answer_log
        self._streaming = router.options(stream=True)

    async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Answer:
        response = self._router.answer.remote(question, request_id=request_id, timeout_s=timeout_s)
        answer: Answer = await call(response, "router", deadline_in(timeout_s + GRACE_S))
        self._answer_log.offer(question, answer)
        return answer

    async def events(self, question: str, *, request_id: str, timeout_s: float) -> AsyncGenerator[Event, None]:
        response = self._streaming.events.remote(question, request_id=request_id, timeout_s=timeout_s)
        async with aclosing(stream(response, "router", deadline_in(timeout_s + GRACE_S))) as events:
            async for event in events:
                if isinstance(event, Finished):
                    self._answer_log.offer(question, event.answer)
                yield event

    async def search(self, query: str, limit: int, *, timeout_s: float) -> list[Passage]:
        response = self._router.search.remote(query, limit, timeout_s=timeout_s)
        return await call(response, "router", deadline_in(timeout_s + GRACE_S))

    async def rerank(
        self,
        query: str,
        documents: list[str],
        *,
        timeout_s: float,
        tenant: str | None = None,
        long_document: LongDocument | None = None,
    ) -> Reranked:
        response = self._router.rerank.remote(
            query, documents, timeout_s=timeout_s, tenant=tenant, long_document=long_document
        )
        return await call(response, "router", deadline_in(timeout_s + GRACE_S))

    async def check(
        self,
        text: str,
        facts: list[Passage],
        *,
        timeout_s: float,
        tenant: str | None = None,
        threshold: float | None = None,
    ) -> CheckedText:
        response = self._router.check.remote(text, facts, timeout_s=timeout_s, tenant=tenant, threshold=threshold)
        return await call(response, "router", deadline_in(timeout_s + GRACE_S))

    async def embed(
        self, texts: list[str], *, timeout_s: float, tenant: str | None = None, query: bool = False
    ) -> Embedded:
        response = self._router.embed.remote(texts, timeout_s=timeout_s, tenant=tenant, query=query)
        return await call(response, "router", deadline_in(timeout_s + GRACE_S))

    async def gaps(self, query: GapQuery, *, timeout_s: float) -> GapPage:
        return await call(self._router.gaps.remote(query), "router", deadline_in(timeout_s))

    async def ready(self) -> dict[str, bool]:
        try:
            return await call(self._router.ready.remote(), "router", deadline_in(READY_S))
        except AnswerError:  # too slow, overloaded or gone: that is an answer to the question, not a failure of it
            return {"router": False}


GRACE_S = 2.0
"""The Router keeps the deadline and can still answer with what was proven; the gateway waits this much longer."""
READY_S = 5.0


@serve.deployment(name="Gateway")
@serve.ingress()
class GatewayDeployment:
    def __init__(self, settings: Settings, router: DeploymentHandle) -> None:
        join_serve_log()
        self._settings = settings
        self._backend = RouterBackend(router, AnswerLog.of(settings.answer_log, settings.home / "answers"))

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_api(
            self._backend,
            default_timeout_s=self._settings.timeout_s,
            max_body_bytes=self._settings.max_body_bytes,
            max_question_chars=self._settings.answer.max_question_chars,
            log_questions=self._settings.logging.questions,
            identified=adopt,
        )
