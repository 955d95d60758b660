"""Answers over rows, as the product would give them, for tests of their scoring."""

from __future__ import annotations

from serving.answer.types import DeclineReason, Outcome, Passage, Reason, Route
from serving.answer.wire import Answer, CitationOut, ClaimOut, Decline, PassageOut, RouteOut, Spans, Timings
from serving.evaluation.memory import identity
from serving.evaluation.rows import QaPassage, QaRow

TIDES = "The moon raises the tides. The tide at Korran turns every 6 hours."
BREAD = "Bread keeps for two days in linen."
ROUTE = RouteOut(chosen=Route.SINGLE_PASS, ran=Route.SINGLE_PASS, cue="?")


def qa_row(name: str = "q1", *, answerable: bool = True, answers: tuple[str, ...] = ("every 6 hours",)) -> QaRow:
    return QaRow(
        id=name,
        question="When does the tide at Korran turn?",
        passages=(
            QaPassage(text=TIDES, title="Tides", supporting=answerable),
            QaPassage(text=BREAD, title="Bread", supporting=False),
        ),
        answers=answers if answerable else (),
        answerable=answerable,
    )


def passages(*places: int, score: float = 0.8) -> tuple[PassageOut, ...]:
    both = (("Tides", TIDES), ("Bread", BREAD))
    return tuple(
        PassageOut.of(Passage(id=identity(*both[place]), text=both[place][1], title=both[place][0], score=score))
        for place in places
    )


def answered(*claims: tuple[str, tuple[int, ...]], score: float = 0.9, given: tuple[int, ...] = (0, 1)) -> Answer:
    """Claims with the chunks that each cites."""
    text = " ".join(claim for claim, _ in claims)
    made: list[ClaimOut] = []
    at = 0
    for claim, chunks in claims:
        span = (at, at + len(claim))
        made.append(
            ClaimOut(
                text=claim,
                span=Spans(utf8=span, code_point=span, utf16=span),
                citations=tuple(CitationOut(chunk=chunk, score=score) for chunk in chunks),
                reason=Reason.ENTAILED,
            )
        )
        at += len(claim) + 1
    return Answer(
        request_id="r",
        outcome=Outcome.ANSWERED,
        text=text,
        marked_text=text,
        verified=True,
        claims=tuple(made),
        route=ROUTE,
        passages=passages(*given),
        timings_ms=Timings(synthesize=40.0, total=50.0),
    )


def declined() -> Answer:
    decline = Decline(reason=DeclineReason.NOT_IN_PASSAGES, message="They do not say.")
    return Answer(request_id="r", outcome=Outcome.DECLINED, decline=decline, route=ROUTE, passages=passages(0, 1))


def searched() -> Answer:
    return Answer(request_id="r", outcome=Outcome.SEARCH, route=ROUTE, passages=passages(0))
