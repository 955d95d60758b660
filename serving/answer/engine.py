"""The engine: one question's way, from route to Answer. ``events`` is the only funnel.

It knows seams and policy, and no model, index or framework. Anything raised out of it is an incident; "we do not know"
is an Answer with ``outcome: declined``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TypeVar

from serving.answer import assembling, context, prompt, verification
from serving.answer.admission import admit
from serving.answer.composing import Composer, Draft
from serving.answer.errors import DeadlineExceededError, InvalidQuestionError
from serving.answer.events import Event, Finished, Found, Proven, Routed, Withheld
from serving.answer.policy import OnFabrication, Policy
from serving.answer.seams import Parts
from serving.answer.types import Clock, Deadline, DeclineReason, Passage, RefusalCause, Route, Routing
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
            versions=self._versions,
            watch=watch,
        )
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

        candidates, index = await self._retrieve(
            lambda: self._parts.retriever.hybrid(question, self._policy.candidates, deadline=deadline), deadline
        )
        frame = frame.found_in(index)
        watch.lap("retrieve")
        passages = await self._context(question, candidates, granted or routing.route, deadline, watch)
        yield Found(tuple(passages))
        if not passages:
            yield Finished(assembling.declined(frame, passages, DeclineReason.NOTHING_RETRIEVED))
            return
        composer = Composer(self._parts, self._policy, self._clock, self._control_tokens)
        draft = await composer.compose(
            question, passages, nonce=self._nonce(), request_id=request_id, deadline=deadline
        )
        watch.record("synthesize", draft.synthesize_s)
        watch.record("verify", draft.verify_s)
        for event in self._settle(frame, question, passages, draft, deadline):
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

    async def _context(
        self, question: str, found: Sequence[Passage], route: Route, deadline: Deadline, watch: assembling.Stopwatch
    ) -> list[Passage]:
        """Reranks, freshens, consolidates and fills the budget; best first."""
        policy = self._policy
        if not found:
            return []
        documents = [prompt.premise(passage) for passage in found]
        scores = await within(deadline, self._parts.reranker.score(question, documents, deadline=deadline), "reranking")
        ranked = context.rank(found, scores, retrieval_weight=policy.retrieval_weight, floor=policy.score_floor)
        now = self._now()
        if context.time_sensitive(question, now=now):
            ranked = context.freshen(
                ranked, now=now, half_life_days=policy.half_life_days, weight=policy.recency_weight
            )
        kept = context.budget(
            context.consolidate(ranked, per_source=policy.per_source),
            counter=self._parts.counter,
            render=self._render,
            tokens=policy.context_tokens,
            limit=policy.agentic_passages if route is Route.AGENTIC else policy.context_passages,
        )
        watch.lap("rerank")
        return kept

    def _render(self, number: int, passage: Passage) -> str:
        # Counted with a nonce of the real one's length: the budget holds for what the prompt will say.
        return prompt.render(number, passage, "0" * 8, self._control_tokens)

    def _settle(
        self, frame: assembling.Frame, question: str, passages: Sequence[Passage], draft: Draft, deadline: Deadline
    ) -> list[Event]:
        """Decides what became of a draft: answered, declined, refused, or too late."""
        frame = frame.used(draft)
        if draft.declines:
            return [Finished(assembling.declined(frame, passages, DeclineReason.NOT_IN_PASSAGES))]
        if draft.reply.fabricated and self._policy.on_fabrication is OnFabrication.REFUSE:
            cause = RefusalCause.FABRICATED_CITATION
            return [Finished(assembling.declined(frame, passages, DeclineReason.REFUSED, cause))]
        corrected = verification.correct(draft.decomposed, draft.judged, floor=self._policy.confidence_floor)
        admitted = admit(draft.reply, corrected, passages, question)
        if not admitted.claims and (draft.finish_reason == "deadline" or deadline.passed):
            raise DeadlineExceededError("the deadline passed before a claim was proven; allow more time")
        if not draft.cites:
            return [Finished(assembling.declined(frame, passages, DeclineReason.REFUSED, RefusalCause.UNGROUNDED))]
        withheld: list[Event] = [Withheld(reason, count) for reason, count in admitted.dropped]
        if not admitted.claims:
            reason = DeclineReason.NOTHING_PROVEN
            return [*withheld, Finished(assembling.declined(frame, passages, reason, dropped=admitted.dropped))]
        proven: list[Event] = [Proven(shown.statement.claim.text, shown.judged.citations) for shown in admitted.claims]
        truncated = draft.cut_short or deadline.passed
        answer = assembling.answered(frame, passages, admitted, truncated=truncated)
        return [*proven, *withheld, Finished(answer)]
