"""Examples for the API's description, made by the code that makes the real ones."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from serving.answer import grounding
from serving.answer.declining import message
from serving.answer.events import Event, Finished, Found, Proven, Routed
from serving.answer.types import Citation, DeclineReason, Outcome, Passage, Reason, Route, Span, Support
from serving.answer.wire import (
    Answer,
    CitationOut,
    ClaimOut,
    Decline,
    PassageOut,
    RouteOut,
    Timings,
    Usage,
    Versions,
)
from serving.gaps.records import AskingOut, GapOut, GapPage, PassageRef, State
from serving.gateway.stream_events import Encoder, name_of, told

REQUEST_ID = "7f3c1f0a9c5e4f6c8d1b2a3e4d5c6b7a"
QUESTION = "What does itertools.chain do?"

_TEXT = (
    "Return a chain object whose .__next__() method returns elements from the first iterable until it is exhausted, "
    "then elements from the next iterable, until all of the iterables are exhausted."
)
PASSAGE = Passage(
    id="3b9f2c6d81e04a57",
    text=f"chain(*iterables) --> chain object\n\n{_TEXT}",
    title="itertools.chain",
    url="https://docs.python.org/3/library/itertools.html",
    source="python",
    heading_path=("itertools",),
    source_path="itertools.py",
    score=0.8127,
)
_VERSIONS = Versions(
    settings="a41f09c2d7be",
    prompt="5d0c7be1",
    synthesizer="SmolLM2-135M-Instruct@9f8e7d6c5b4a",
    reranker="all-MiniLM-L6-v2@1a2b3c4d5e6f",
    verifier="overlap@0.85",
    router="rules",
    index="c0ffee12",
)


def answered() -> Answer:
    """One sentence, proven by one passage."""
    span, score = Span(0, len(_TEXT.encode())), 0.9667
    supports = [Support(span, chunks=(0,), confidences=(score,))]
    [spans] = grounding.spans_in_all_units(_TEXT, [span])
    return Answer(
        request_id=REQUEST_ID,
        outcome=Outcome.ANSWERED,
        text=_TEXT,
        marked_text=grounding.insert(_TEXT, supports),
        verified=True,
        claims=(
            ClaimOut(text=_TEXT, span=spans, citations=(CitationOut(chunk=0, score=score),), reason=Reason.ENTAILED),
        ),
        grounding=grounding.metadata(_TEXT, supports, [PASSAGE]),
        route=RouteOut(chosen=Route.SINGLE_PASS, ran=Route.SINGLE_PASS, cue="question word"),
        passages=(PassageOut.of(PASSAGE),),
        usage=Usage(prompt_tokens=412, completion_tokens=47, verified_pairs=1),
        timings_ms=Timings(route=0.2, retrieve=21.4, rerank=18.9, synthesize=1630.5, verify=6.1, total=1672.3),
        versions=_VERSIONS,
    )


def streamed() -> str:
    """The same as a stream, whole."""
    answer, encoder = answered(), Encoder(REQUEST_ID)
    events: list[Event] = [
        Routed(answer.route.chosen, answer.route.ran, answer.route.cue),
        Found((PASSAGE,)),
        *(Proven(claim.text, tuple(Citation(c.chunk, c.score) for c in claim.citations)) for claim in answer.claims),
        Finished(answer),
    ]
    return b"".join(encoder.encode(name_of(said), said) for said in map(told, events)).decode()


def declined() -> Answer:
    """The passages that were found do not say."""
    reason = DeclineReason.NOT_IN_PASSAGES
    return Answer(
        request_id=REQUEST_ID,
        outcome=Outcome.DECLINED,
        decline=Decline(reason=reason, message=message(reason)),
        route=RouteOut(chosen=Route.SINGLE_PASS, ran=Route.SINGLE_PASS, cue="question word"),
        passages=(PassageOut.of(PASSAGE),),
        usage=Usage(prompt_tokens=398, completion_tokens=3),
        timings_ms=Timings(route=0.2, retrieve=20.8, rerank=17.3, synthesize=301.7, total=340.0),
        versions=_VERSIONS,
    )


def searched() -> Answer:
    """The question was navigational: passages, and no model was asked."""
    return Answer(
        request_id=REQUEST_ID,
        outcome=Outcome.SEARCH,
        route=RouteOut(chosen=Route.SEARCH, ran=Route.SEARCH, cue="a site's name"),
        passages=(PassageOut.of(PASSAGE),),
        timings_ms=Timings(route=0.2, retrieve=3.4, total=3.6),
        versions=_VERSIONS,
    )


def gaps() -> GapPage:
    """One question that was declined four times."""
    question = "Which year will itertools get a new function?"
    asked_at = datetime(2026, 3, 2, 9, 15, 27, tzinfo=UTC)
    latest = AskingOut(
        question=question,
        question_hash=hashlib.sha256(question.encode()).hexdigest(),
        asked_at=asked_at,
        request_id=REQUEST_ID,
        reason=DeclineReason.NOT_IN_PASSAGES,
        cause=None,
        route_chosen=Route.SINGLE_PASS,
        route_ran=Route.SINGLE_PASS,
        versions=_VERSIONS,
        passages=(PassageRef(id=PASSAGE.id, score=PASSAGE.score),),
    )
    gap = GapOut(
        id=12,
        state=State.OPEN,
        question=question,
        question_hash=latest.question_hash,
        tenant=None,
        count=4,
        first_seen=datetime(2026, 3, 1, 17, 2, 5, tzinfo=UTC),
        last_seen=asked_at,
        retried_at=None,
        resolution=None,
        latest=latest,
    )
    return GapPage(gaps=(gap,), next_cursor=None)
