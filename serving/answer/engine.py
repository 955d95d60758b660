"""The engine: one question's way, from route to Answer. ``events`` is the only funnel.

It knows seams and policy, and no model, index or framework. Anything raised out of it is an incident; "we do not know"
is an Answer with ``outcome: declined``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import TypeVar

from serving.answer import assembling, context, prompt
from serving.answer.composing import Composer
from serving.answer.drafts import Draft
from serving.answer.errors import DeadlineExceededError, InvalidQuestionError
from serving.answer.events import Event, Finished, Found, Proven, Routed
from serving.answer.pacing import Pace, Plan, leaving
from serving.answer.policy import Policy
from serving.answer.seams import Parts
from serving.answer.settling import settle
from serving.answer.types import Clock, Deadline, DeclineReason, Passage, Route, Routing, Scores
from serving.answer.wire import Answer, Versions

T = TypeVar("T")


async def within(deadline: Deadline, awaitable: Awaitable[T], stage: str) -> T:
    """Awaits until the deadline. Raises :class:`DeadlineExceededError` naming the stage that was too slow."""
    try:
        return await asyncio.wait_for(awaitable, deadline.remaining())
    except TimeoutError as error:
        raise DeadlineExceededError(f"the deadline passed during {stage}; allow more time or ask for less") from error


class Engine:
    """Answers questions. Safe to share between concurrent questions.

    ``clock`` gives seconds, ``now`` the date for freshness, ``nonce`` a fresh unguessable string a request.
    ``control_tokens`` are what no passage or question may write in the prompt: the default list, and whatever the
    served model's tokenizer has beyond it.
    """

    def __init__(
        self,
        parts: Parts,
        policy: Policy,
        versions: Versions,
        *,
        clock: Clock,
        now: Callable[[], datetime],
        nonce: Callable[[], str],
        control_tokens: Sequence[str] = prompt.CONTROL_TOKENS,
    ) -> None:
        self._parts = parts
        self._policy = policy
        self._versions = versions.model_copy(update={"prompt": prompt.version()})
        self._clock = clock
        self._now = now
        self._nonce = nonce
        self._control_tokens = tuple(control_tokens)
        self._composer = Composer(parts, policy, clock, self._control_tokens)
        self._pace = Pace()

    async def route(self, question: str, *, deadline: Deadline) -> Routing:
        """Validates the question and chooses its route. No model runs. Raises :class:`InvalidQuestionError`."""
        if not question.strip():
            raise InvalidQuestionError("the question is empty; send some text in `question`")
        if len(question) > self._policy.max_question_chars:
            raise InvalidQuestionError(
                f"the question has {len(question)} characters; at most {self._policy.max_question_chars} are taken"
            )
        return await within(deadline, self._parts.classifier.classify(question, deadline=deadline), "routing")

    async def ask(
        self,
        question: str,
        *,
        request_id: str,
        deadline: Deadline,
        routing: Routing | None = None,
        granted: Route | None = None,
    ) -> Answer:
        """Folds the events of a question into its Answer."""
        async with aclosing(
            self.events(question, request_id=request_id, deadline=deadline, routing=routing, granted=granted)
        ) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.answer
        raise AssertionError("the events of a question end with Finished; this is a bug")

    async def events(
        self,
        question: str,
        *,
        request_id: str,
        deadline: Deadline,
        routing: Routing | None = None,
        granted: Route | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Yields the events of one question, ``Finished`` last.

        ``routing`` skips the classifier when the route is already known; ``granted`` is the route that admission let
        through, when that is a cheaper one than was chosen.

        Raises :class:`InvalidQuestionError`, :class:`DeadlineExceededError` when nothing was proven in time, and what
        the seams raise.
        """
        watch = assembling.Stopwatch(self._clock)
        routing = routing or await self.route(question, deadline=deadline)
        watch.lap("route")
        ran = Route.SEARCH if routing.route is Route.SEARCH else Route.SINGLE_PASS
        frame = assembling.Frame(
            request_id=request_id,
            routed=Routed(routing.route, ran, routing.cue),
            known=self._versions,
            versions=Versions(settings=self._versions.settings, prompt=self._versions.prompt),
            watch=watch,
            language=partial(self._parts.language, question),
        ).asked(router=routing.version)
        yield frame.routed
        if ran is Route.SEARCH:
            limit = self._policy.search_results
            results, index = await self._retrieve(
                lambda: self._parts.retriever.lexical(question, limit, deadline=deadline), deadline
            )
            frame = frame.found_in(index)
            watch.lap("retrieve")
            yield Found(tuple(results))
            yield Finished(assembling.search(frame, results))
            return

        around = self._parts.counter.count(f"{prompt.SYSTEM}\n{question}")
        # No more than half is held back: the pace may have been that of a worse time.
        early = leaving(deadline, min(self._pace.least_s(prompt_tokens=around), deadline.remaining() / 2))
        candidates, index = await self._retrieve(
            lambda: self._parts.retriever.hybrid(question, self._policy.candidates, deadline=early), early
        )
        frame = frame.found_in(index)
        watch.lap("retrieve")
        ranked, reranker = await self._rank(question, candidates, early)
        if candidates:
            frame = frame.asked(reranker=reranker)
        plan = self._pace.plan(
            deadline.remaining(),
            prompt_tokens=around,
            context_tokens=self._policy.context_tokens,
            reply_tokens=self._policy.max_reply_tokens,
        )
        passages = self._fill(ranked, granted or routing.route, plan)
        watch.lap("rerank")
        yield Found(tuple(passages))
        if not passages:
            yield Finished(assembling.declined(frame, passages, DeclineReason.NOTHING_RETRIEVED))
            return
        writing = await self._composer.begin(
            question,
            passages,
            nonce=self._nonce(),
            request_id=request_id,
            max_tokens=plan.reply_tokens,
            deadline=deadline,
        )
        if writing is None:
            yield Finished(assembling.declined(frame, passages, DeclineReason.NOT_IN_PASSAGES))
            return
        async with aclosing(writing.claims()) as claims:
            async for judged in claims:
                yield Proven(judged.claim.text, judged.citations)
        draft = writing.draft
        self._observe(draft)
        watch.record("synthesize", draft.synthesize_s)
        watch.record("verify", draft.verify_s)
        for event in settle(frame.used(draft), question, passages, draft, policy=self._policy):
            yield event

    async def _retrieve(
        self, ask: Callable[[], Awaitable[Sequence[Passage]]], deadline: Deadline
    ) -> tuple[Sequence[Passage], str]:
        """What ``ask`` finds, and the version of the index that holds it.

        A newer index may take over at any time. When it did so in between, the question is asked again: passages and
        version are always of one index.
        """
        version = await within(deadline, self._parts.retriever.version(), "retrieval")
        while True:
            found = await within(deadline, ask(), "retrieval")
            now = await within(deadline, self._parts.retriever.version(), "retrieval")
            if now == version:
                return found, version
            version = now

    async def _rank(self, question: str, found: Sequence[Passage], deadline: Deadline) -> tuple[list[Passage], str]:
        """Reranks and freshens; best first, noise left out. And the reranker's version, where it says so."""
        policy = self._policy
        if not found:
            return [], ""
        documents = [prompt.premise(passage) for passage in found]
        scores = await within(deadline, self._parts.reranker.score(question, documents, deadline=deadline), "reranking")
        ranked = context.rank(found, scores, retrieval_weight=policy.retrieval_weight, floor=policy.score_floor)
        now = self._now()
        if context.time_sensitive(question, now=now):
            ranked = context.freshen(
                ranked, now=now, half_life_days=policy.half_life_days, weight=policy.recency_weight
            )
        return ranked, scores.version if isinstance(scores, Scores) else ""

    def _fill(self, ranked: Sequence[Passage], route: Route, plan: Plan) -> list[Passage]:
        """Consolidates what was ranked and fills the plan's budget, in rank order."""
        policy = self._policy
        return context.budget(
            context.consolidate(ranked, per_source=policy.per_source),
            counter=self._parts.counter,
            render=self._render,
            tokens=plan.context_tokens,
            limit=policy.agentic_passages if route is Route.AGENTIC else policy.context_passages,
        )

    def _observe(self, draft: Draft) -> None:
        self._pace.observe(
            prompt_tokens=draft.prompt_tokens,
            first_s=draft.first_s,
            reply_tokens=draft.completion_tokens,
            writing_s=draft.synthesize_s - draft.first_s,
            verifying_s=draft.verify_s,
        )

    def _render(self, number: int, passage: Passage) -> str:
        # Counted with a nonce of the real one's length: the budget holds for what the prompt will say.
        return prompt.render(number, passage, "0" * 8, self._control_tokens)
