"""A scripted backend behind the HTTP API, and answers of each outcome for it to give."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from serving.answer.checking import check_text
from serving.answer.direct import CheckedText, Embedded, Reranked
from serving.answer.events import Event, Finished, Found, Proven, Routed, Withheld
from serving.answer.reference import OverlapVerifier
from serving.answer.types import (
    Citation,
    Deadline,
    DeclineReason,
    Outcome,
    PairScore,
    Passage,
    Phases,
    Reason,
    Route,
    Scored,
)
from serving.answer.wire import (
    Answer,
    CitationOut,
    ClaimOut,
    Decline,
    Dropped,
    Grounding,
    GroundingChunk,
    GroundingSupport,
    PassageOut,
    RouteOut,
    Segment,
    Spans,
    Timings,
    WebChunk,
)
from serving.gaps.records import GapPage, GapQuery

PHASES = Phases(tokenise_s=0.0012, queue_s=0.25, compute_s=0.03, total_s=0.2812, tokens=90, padded_tokens=96)
TEXT = "Chain makes one iterator of many."
PASSAGE = Passage(
    id="p1",
    text="Make one iterator of many iterables.",
    title="itertools.chain",
    url="https://docs.example/itertools",
    source="docs.example",
    heading_path=("itertools", "chain"),
    score=0.81,
)


def answered(request_id: str = "r1", *, title: str = PASSAGE.title, text: str = TEXT) -> Answer:
    """An answer of one proven sentence."""
    size = len(text.encode())
    passage = PassageOut.of(PASSAGE).model_copy(update={"title": title})
    return Answer(
        request_id=request_id,
        outcome=Outcome.ANSWERED,
        text=text,
        marked_text=f"{text[:-1]} [1].",
        verified=False,
        truncated=True,
        claims=(
            ClaimOut(
                text=text,
                span=Spans(utf8=(0, size), code_point=(0, len(text)), utf16=(0, len(text))),
                citations=(CitationOut(chunk=0, score=0.93),),
                reason=Reason.ENTAILED,
            ),
        ),
        grounding=Grounding(
            groundingChunks=(GroundingChunk(web=WebChunk(uri=str(passage.url), title=title)),),
            groundingSupports=(
                GroundingSupport(
                    segment=Segment(startIndex=0, endIndex=size, text=text),
                    groundingChunkIndices=(0,),
                    confidenceScores=(0.93,),
                ),
            ),
        ),
        dropped=(Dropped(reason=Reason.UNCITED, count=2),),
        route=RouteOut(chosen=Route.SINGLE_PASS, ran=Route.SINGLE_PASS, cue="question word"),
        passages=(passage,),
        timings_ms=Timings(total=1234.0),
    )


def declined(request_id: str = "r1", *, message: str = "The passages do not answer this.") -> Answer:
    return Answer(
        request_id=request_id,
        outcome=Outcome.DECLINED,
        decline=Decline(reason=DeclineReason.NOT_IN_PASSAGES, message=message),
        route=RouteOut(chosen=Route.SINGLE_PASS, ran=Route.SINGLE_PASS, cue="question word"),
        passages=(PassageOut.of(PASSAGE),),
    )


def searched(request_id: str = "r1", *passages: Passage) -> Answer:
    return Answer(
        request_id=request_id,
        outcome=Outcome.SEARCH,
        route=RouteOut(chosen=Route.SEARCH, ran=Route.SEARCH, cue="a domain"),
        passages=tuple(PassageOut.of(passage) for passage in passages),
    )


def events_of(answer: Answer) -> list[Event]:
    """What is said on the way to an answer."""
    return [
        Routed(answer.route.chosen, answer.route.ran, answer.route.cue),
        Found((PASSAGE,) if answer.passages else ()),
        *(Proven(claim.text, tuple(Citation(c.chunk, c.score) for c in claim.citations)) for claim in answer.claims),
        *(Withheld(dropped.reason, dropped.count) for dropped in answer.dropped),
        Finished(answer),
    ]


@dataclass
class FakeBackend:
    """Gives what it is told to, or raises it, and remembers what it was asked."""

    answer_is: Answer | None = None
    error: Exception | None = None
    models: dict[str, bool] = field(default_factory=lambda: {"synthesizer": True, "index": True})
    asked: list[tuple[str, str, float]] = field(default_factory=list)
    searched: list[tuple[str, int, float]] = field(default_factory=list)
    gaps_are: GapPage = field(default_factory=lambda: GapPage(gaps=(), next_cursor=None))
    gap_queries: list[GapQuery] = field(default_factory=list)
    direct: list[tuple[Any, ...]] = field(default_factory=list)
    phases: Phases = PHASES

    async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Answer:
        self.asked.append((question, request_id, timeout_s))
        await self._fail()
        return (self.answer_is or answered()).model_copy(update={"request_id": request_id})

    async def events(self, question: str, *, request_id: str, timeout_s: float) -> AsyncGenerator[Event, None]:
        answer = await self.answer(question, request_id=request_id, timeout_s=timeout_s)
        for event in events_of(answer):
            yield event

    async def search(self, query: str, limit: int, *, timeout_s: float) -> list[Passage]:
        self.searched.append((query, limit, timeout_s))
        await self._fail()
        return [PASSAGE][:limit]

    async def gaps(self, query: GapQuery, *, timeout_s: float) -> GapPage:
        del timeout_s
        self.gap_queries.append(query)
        await self._fail()
        return self.gaps_are

    async def rerank(
        self,
        query: str,
        documents: list[str],
        *,
        timeout_s: float,
        tenant: str | None = None,
        long_document: str | None = None,
    ) -> Reranked:
        """A document scores by its length; every fifth was cut."""
        self.direct.append(("rerank", query, documents, timeout_s, tenant, long_document))
        await self._fail()
        pairs = tuple(
            PairScore(1 - 1 / (1 + len(text)), 1 + len(text) // 50, len(text) // 50, truncated=number % 5 == 4)
            for number, text in enumerate(documents)
        )
        return Reranked(Scored(pairs, self.phases), "fake@1")

    async def check(
        self,
        text: str,
        facts: list[Passage],
        *,
        timeout_s: float,
        tenant: str | None = None,
        threshold: float | None = None,
    ) -> CheckedText:
        """By counting words, as a model that read each pair in one piece."""
        self.direct.append(("check", text, facts, timeout_s, tenant, threshold))
        await self._fail()
        deadline = Deadline.after(timeout_s, time.monotonic)
        floor = 0.5 if threshold is None else threshold
        checked = await check_text(text, facts, verifier=OverlapVerifier(), floor=floor, deadline=deadline)
        return CheckedText(checked.claims, checked.pairs, checked.pairs, False, self.phases, "overlap")

    async def embed(
        self, texts: list[str], *, timeout_s: float, tenant: str | None = None, query: bool = False
    ) -> Embedded:
        self.direct.append(("embed", texts, timeout_s, tenant, query))
        await self._fail()
        return Embedded(tuple(struct.pack("<2f", 0.6, 0.8) for _ in texts), 2, self.phases, "fake@1")

    async def ready(self) -> dict[str, bool]:
        await self._fail()
        return self.models

    async def _fail(self) -> None:
        await asyncio.sleep(0)
        if self.error:
            raise self.error
