"""Composing: the model writes, and each sentence is checked while the next is being written.

The reply is parsed as it arrives, once: a statement that the parser gives out is final, so what is checked early is
what the answer is made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from serving.answer import prompt, verification
from serving.answer.context import numbered
from serving.answer.policy import GrammarMode, Policy
from serving.answer.quotes import quotable
from serving.answer.seams import Generation, Parts
from serving.answer.statements import Reply, Statement
from serving.answer.streaming import Parser
from serving.answer.text import dotted_names
from serving.answer.types import Claim, Clock, Deadline, Judged, Passage, Reason, Span

CUT_SHORT = ("length", "deadline")
LEAD = 0.15


@dataclass(slots=True)
class Draft:
    """A reply as it was written, with what it cost and what was found about its claims. Times in seconds."""

    text: str = ""
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    verified_pairs: int = 0
    synthesize_s: float = 0.0
    verify_s: float = 0.0
    reply: Reply = field(default_factory=lambda: Reply("", ()))
    decomposed: verification.Decomposed = field(default_factory=lambda: verification.Decomposed((), ()))
    judged: tuple[Judged, ...] = ()

    @property
    def cut_short(self) -> bool:
        """Whether the reply ended before the model was done."""
        return self.finish_reason in CUT_SHORT

    @property
    def declines(self) -> bool:
        """Whether the model said, in the agreed form, that the passages do not answer."""
        return self.text.strip().strip("\"'*") == prompt.DECLINE_LINE

    @property
    def cites(self) -> bool:
        return any(statement.claim.chunks or statement.claim.fabricated for statement in self.reply.statements)


class Composer:
    """Writes a draft over passages and has its claims judged. One instance a question."""

    def __init__(
        self,
        parts: Parts,
        policy: Policy,
        clock: Clock,
        control_tokens: Sequence[str] = prompt.CONTROL_TOKENS,
    ) -> None:
        self._parts = parts
        self._policy = policy
        self._clock = clock
        self._control_tokens = control_tokens
        self._asked: set[Claim] = set()
        self._checks: list[asyncio.Task[verification.Checked]] = []

    async def compose(
        self, question: str, passages: Sequence[Passage], *, nonce: str, request_id: str, deadline: Deadline
    ) -> Draft:
        """Returns the draft, every claim of it judged. Past the deadline, claims without a verdict are dropped for it.

        Raises what the seams raise; nothing is left running.
        """
        draft = Draft()
        grammar = await self._grammar(question, passages, deadline)
        if grammar == prompt.DECLINE_GRAMMAR:  # nothing else could be written: the model need not be asked
            draft.text = prompt.DECLINE_LINE
            return draft
        request = Generation(
            messages=prompt.messages(question, numbered(passages), nonce, self._control_tokens),
            request_id=request_id,
            max_tokens=self._policy.max_reply_tokens,
            temperature=self._policy.temperature,
            grammar=grammar,
        )
        try:
            await self._write(draft, request, question, passages, deadline)
            draft.decomposed = _without_cut_tail(verification.decompose(draft.reply), cut_short=draft.cut_short)
            if not draft.declines:
                await self._judge(draft, question, passages, deadline)
        finally:
            for task in self._checks:
                task.cancel()
            await asyncio.gather(*self._checks, return_exceptions=True)
        return draft

    async def _grammar(self, question: str, passages: Sequence[Passage], deadline: Deadline) -> str | None:
        if self._policy.grammar is GrammarMode.FREE:
            return None
        if self._policy.grammar is GrammarMode.MARKERS:
            names = {name for text in (question, *map(prompt.premise, passages)) for name in dotted_names(text)}
            return prompt.marker_grammar(len(passages), self._policy.max_sentences, sorted(names))
        choices = await self._choices(question, passages, deadline)
        return prompt.quote_grammar(choices, self._policy.max_sentences)

    async def _choices(self, question: str, passages: Sequence[Passage], deadline: Deadline) -> list[tuple[int, str]]:
        """The sentences a reply may quote, best first: those that bear on the question.

        What counts is a sentence's own score, its passage's, and whether it leads it: the first says what it is about.
        """
        quotes = quotable(passages, self._policy.max_quotes)
        claims = [Claim(sentence, Span(0, 0), (number - 1,)) for number, sentence in quotes]
        bears = await self._parts.relevance.relevant(question, claims, passages, deadline=deadline)
        bearing = [quote for quote, does in zip(quotes, bears, strict=True) if does]
        if not bearing:
            return []
        documents = [f"{passages[number - 1].title}\n{sentence}" for number, sentence in bearing]
        scores = await self._parts.reranker.score(question, documents, deadline=deadline)
        leads = [number not in {before for before, _ in bearing[:at]} for at, (number, _) in enumerate(bearing)]
        value = [
            score + passages[number - 1].score + LEAD * lead
            for (number, _), score, lead in zip(bearing, scores, leads, strict=True)
        ]
        best = sorted(range(len(bearing)), key=lambda at: -value[at])[: self._policy.max_choices]
        return [bearing[at] for at in best]

    async def _write(
        self, draft: Draft, request: Generation, question: str, passages: Sequence[Passage], deadline: Deadline
    ) -> None:
        began = self._clock()
        parser = Parser(len(passages))
        block: list[Statement] = []  # of which the last statement that was given out is
        async with aclosing(self._parts.synthesizer.generate(request, deadline=deadline)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                draft.text += delta.text
                draft.prompt_tokens = delta.prompt_tokens or draft.prompt_tokens
                draft.completion_tokens = delta.completion_tokens or draft.completion_tokens
                draft.finish_reason = delta.finish_reason or draft.finish_reason
                if fresh := parser.feed(delta.text):
                    # A claim may lean on those before it in its block: they are read, but not checked, again.
                    statements = [*(s for s in block if s.block == fresh[0].block), *fresh]
                    decomposed = verification.decompose(Reply("", tuple(statements)))
                    self._start_checks([s.claim for s in decomposed.checkable], question, passages, deadline)
                    block = [s for s in statements if s.block == fresh[-1].block]
        parser.finish()
        draft.reply = parser.reply()
        draft.synthesize_s = self._clock() - began

    def _start_checks(
        self, claims: Sequence[Claim], question: str, passages: Sequence[Passage], deadline: Deadline
    ) -> None:
        """Has the claims that were not asked about before judged, together, in the background."""
        new = [key for key in dict.fromkeys(map(_key, claims)) if key not in self._asked]
        if new:
            self._asked.update(new)
            self._checks.append(asyncio.create_task(self._check(new, question, passages, deadline)))

    async def _check(
        self, claims: list[Claim], question: str, passages: Sequence[Passage], deadline: Deadline
    ) -> verification.Checked:
        return await verification.check(
            claims,
            passages,
            question=question,
            verifier=self._parts.verifier,
            relevance=self._parts.relevance,
            deadline=deadline,
        )

    async def _judge(self, draft: Draft, question: str, passages: Sequence[Passage], deadline: Deadline) -> None:
        began = self._clock()
        claims = [statement.claim for statement in draft.decomposed.checkable]
        self._start_checks(claims, question, passages, deadline)
        verdicts: dict[Claim, Judged] = {}
        done, _ = await asyncio.wait(self._checks, timeout=deadline.remaining()) if self._checks else ((), ())
        for task in done:
            checked = task.result()
            draft.verified_pairs += checked.pairs
            verdicts.update((_key(judgement.claim), judgement) for judgement in checked.judged)
        draft.judged = tuple(
            Judged(claim, verdict.reason, verdict.citations)
            if (verdict := verdicts.get(_key(claim)))
            else Judged(claim, Reason.DEADLINE)
            for claim in claims
        )
        draft.verify_s = self._clock() - began


def _key(claim: Claim) -> Claim:
    """What a verdict depends on: the words, their context and the passages, not where they stand."""
    return Claim(claim.text, Span(0, 0), claim.chunks, context=claim.context)


def _without_cut_tail(decomposed: verification.Decomposed, *, cut_short: bool) -> verification.Decomposed:
    """Drops the last sentence of a reply that was cut before its end: half a sentence is no claim."""
    if not cut_short or not decomposed.checkable or decomposed.checkable[-1].claim.complete:
        return decomposed
    *whole, tail = decomposed.checkable
    return verification.Decomposed(tuple(whole), (*decomposed.dropped, (tail, Reason.TRUNCATED)))
