"""Writing: the model writes, each sentence is checked while the next is being written, and what is certain is shown.

The reply is parsed as it arrives, once: a statement that the parser gives out is final, so what is checked early is
what the answer is made of. Whoever reads the claims slowly holds nothing up: a task of its own takes the reply in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

from serving.answer import verification
from serving.answer.drafts import Draft
from serving.answer.errors import DeadlineExceededError
from serving.answer.releasing import certain, question_of
from serving.answer.seams import Generation, Parts
from serving.answer.statements import Reply, Statement
from serving.answer.streaming import Parser
from serving.answer.types import Claim, Clock, Deadline, Judged, Passage, Reason
from serving.answer.unwrapping import StructuredParser


class Writing:
    """One reply, written over ``passages`` and judged. :attr:`draft` is whole once :meth:`claims` has ended.

    ``early`` releases claims before the reply is whole; ``floor`` is the least confidence that a shown claim has.
    """

    def __init__(
        self,
        parts: Parts,
        request: Generation,
        *,
        question: str,
        passages: Sequence[Passage],
        deadline: Deadline,
        clock: Clock,
        floor: float,
        early: bool,
    ) -> None:
        self.draft = Draft()
        self._parts = parts
        self._request = request
        self._question = question
        self._passages = passages
        self._deadline = deadline
        self._clock = clock
        self._floor = floor
        self._early = early
        self._statements: list[Statement] = []
        self._verdicts: dict[Claim, Judged] = {}
        self._asked: set[Claim] = set()
        self._checks: set[asyncio.Task[verification.Checked]] = set()
        self._news = asyncio.Event()

    async def claims(self) -> AsyncGenerator[Judged, None]:
        """Yields claims of the answer as they become certain, in its order. Past the deadline, claims without a verdict
        are dropped for it.

        Raises what the seams raise, as soon as they do; nothing is left running, however it ends.
        """
        writing = asyncio.create_task(self._write())
        writing.add_done_callback(self._tell)
        try:
            while not writing.done():
                await self._news.wait()
                self._news.clear()
                for judged in self._certain():
                    yield judged
            writing.result()
            began = self._clock()
            while True:  # what is done counts also when the deadline has passed since
                for judged in self._certain():
                    yield judged
                if not self._checks or self._deadline.passed:
                    break
                await asyncio.wait(
                    self._checks, timeout=self._deadline.remaining(), return_when=asyncio.FIRST_COMPLETED
                )
            if not self.draft.declines:
                self.draft.judged = tuple(map(self._judged, self.draft.decomposed.checkable))
            self.draft.verify_s = self._clock() - began
        finally:
            running = [writing, *self._checks]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _tell(self, _done: asyncio.Task[object]) -> None:
        self._news.set()

    async def _write(self) -> None:
        draft, request = self.draft, self._request
        began = self._clock()
        structured = StructuredParser(len(self._passages)) if request.schema is not None else None
        parser = structured or Parser(len(self._passages))
        async with aclosing(self._parts.synthesizer.generate(request, deadline=self._deadline)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                draft.first_s = draft.first_s or self._clock() - began
                draft.text += delta.text
                draft.prompt_tokens = delta.prompt_tokens or draft.prompt_tokens
                draft.completion_tokens = delta.completion_tokens or draft.completion_tokens
                draft.finish_reason = delta.finish_reason or draft.finish_reason
                draft.version = delta.version or draft.version
                if fresh := parser.feed(delta.text):
                    self._read(fresh)
        parser.finish()
        draft.reply = parser.reply()
        if structured is not None:
            draft.declined, draft.broken = structured.declined, not structured.closed
            if structured.closed and draft.finish_reason == "length":  # a whole object that just fills the tokens
                draft.finish_reason = "stop"
        draft.decomposed = _without_cut_tail(verification.decompose(draft.reply), cut_short=draft.cut_short)
        if not draft.declines:
            self._start_checks([statement.claim for statement in draft.decomposed.checkable])
        draft.synthesize_s = self._clock() - began

    def _read(self, fresh: Sequence[Statement]) -> None:
        """Has new statements checked. They may lean on those before them in their block: these are read again."""
        self._statements += fresh
        block = [one for one in self._statements if one.block >= fresh[0].block]
        decomposed = verification.decompose(Reply("", tuple(block)))
        self._start_checks([statement.claim for statement in decomposed.checkable])

    def _start_checks(self, claims: Sequence[Claim]) -> None:
        """Has the claims that were not asked about before judged, together, in the background."""
        new = [key for key in dict.fromkeys(map(question_of, claims)) if key not in self._asked]
        if new:
            self._asked.update(new)
            check = asyncio.create_task(self._check(new))
            check.add_done_callback(self._tell)
            self._checks.add(check)

    async def _check(self, claims: list[Claim]) -> verification.Checked:
        return await verification.check(
            claims,
            self._passages,
            question=self._question,
            verifier=self._parts.verifier,
            relevance=self._parts.relevance,
            deadline=self._deadline,
        )

    def _certain(self) -> Iterator[Judged]:
        """Takes in the checks that are done. Yields the claims that are certain by them and were not before."""
        done = {check for check in self._checks if check.done()}
        self._checks -= done
        for check in done:
            # Its claims have no verdict in time; those that were judged before keep theirs.
            if isinstance(check.exception(), DeadlineExceededError):
                continue
            checked = check.result()
            self.draft.verified_pairs += checked.pairs
            self._verdicts.update((question_of(judgement.claim), judgement) for judgement in checked.judged)
        if not done or not self._early:
            return
        found = certain(self._statements, self._verdicts, passages=len(self._passages), floor=self._floor)
        for _, judged in found[len(self.draft.released) :]:
            self.draft.released.append(judged)
            yield judged

    def _judged(self, statement: Statement) -> Judged:
        verdict = self._verdicts.get(question_of(statement.claim))
        if verdict is None:
            return Judged(statement.claim, Reason.DEADLINE)
        return Judged(statement.claim, verdict.reason, verdict.citations, verdict.verdicts)


def _without_cut_tail(decomposed: verification.Decomposed, *, cut_short: bool) -> verification.Decomposed:
    """Drops the last sentence of a reply that was cut before its end: half a sentence is no claim."""
    if not cut_short or not decomposed.checkable or decomposed.checkable[-1].claim.complete:
        return decomposed
    *whole, tail = decomposed.checkable
    return verification.Decomposed(tuple(whole), (*decomposed.dropped, (tail, Reason.TRUNCATED)))
