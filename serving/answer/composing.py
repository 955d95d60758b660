"""Composing: what a model is asked to write over passages, and what it may write."""

from __future__ import annotations

from collections.abc import Sequence

from serving.answer import prompt
from serving.answer.context import numbered
from serving.answer.policy import GrammarMode, OnFabrication, Policy
from serving.answer.quotes import quotable
from serving.answer.seams import Generation, Parts
from serving.answer.structured import schema
from serving.answer.types import Claim, Clock, Deadline, Passage, Span
from serving.answer.writing import Writing

EXCLUDE_FABRICATION = (GrammarMode.QUOTES, GrammarMode.MARKERS)
"""Grammars under which a citation of a passage that was not given cannot be written."""


class Composer:
    """Has replies written over passages. Safe to share between questions."""

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

    async def begin(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        nonce: str,
        request_id: str,
        max_tokens: int,
        deadline: Deadline,
    ) -> Writing | None:
        """A reply to be written, or None when the decline is all that could be: the model need not be asked.

        Claims are released early where no later sentence can take them back: where a fabricated citation would refuse
        the whole answer, its grammar must exclude one. Raises what the seams raise.
        """
        grammar = await self._grammar(question, passages, deadline)
        if grammar == prompt.DECLINE_GRAMMAR:
            return None
        policy = self._policy
        structured = policy.grammar is GrammarMode.STRUCTURED
        put = prompt.messages(question, numbered(passages), nonce, self._control_tokens, as_json=structured)
        request = Generation(
            messages=put,
            request_id=request_id,
            max_tokens=max_tokens,
            temperature=policy.temperature,
            grammar=grammar,
            schema=schema(len(passages)) if structured else None,
        )
        return Writing(
            self._parts,
            request,
            question=question,
            passages=passages,
            deadline=deadline,
            clock=self._clock,
            floor=policy.confidence_floor,
            early=policy.grammar in EXCLUDE_FABRICATION or policy.on_fabrication is OnFabrication.DROP,
        )

    async def _grammar(self, question: str, passages: Sequence[Passage], deadline: Deadline) -> str | None:
        if self._policy.grammar in (GrammarMode.FREE, GrammarMode.STRUCTURED):
            return None
        if self._policy.grammar is GrammarMode.MARKERS:
            return prompt.marker_grammar(len(passages), self._policy.max_sentences)
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
            score + passages[number - 1].score + self._policy.lead_weight * lead
            for (number, _), score, lead in zip(bearing, scores, leads, strict=True)
        ]
        best = sorted(range(len(bearing)), key=lambda at: -value[at])[: self._policy.max_choices]
        return [bearing[at] for at in best]
