"""Assembling Answers: the last step, where text is rebuilt from survivors and its grounding is validated.

Nothing else makes an :class:`~serving.answer.wire.Answer`, so nothing reaches a caller around ``validate``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from serving.answer import declining, grounding
from serving.answer.admission import Admitted
from serving.answer.drafts import Draft
from serving.answer.events import Routed
from serving.answer.types import Clock, DeclineReason, Outcome, Passage, Reason, RefusalCause, Support
from serving.answer.wire import (
    Answer,
    CitationOut,
    ClaimOut,
    Decline,
    Dropped,
    Grounding,
    PassageOut,
    RouteOut,
    Timings,
    Usage,
    Versions,
)


class Stopwatch:
    """Times the stages of one question on an injected clock, in milliseconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._last = clock()
        self._stages: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """Books the time since the last lap to a stage."""
        now = self._clock()
        self._stages[stage] = (now - self._last) * 1e3
        self._last = now

    def record(self, stage: str, seconds: float) -> None:
        """Books a duration that was measured elsewhere."""
        self._stages[stage] = seconds * 1e3
        self._last = self._clock()

    def timings(self) -> Timings:
        total = (self._clock() - self._began) * 1e3
        return Timings(total=round(total, 1), **{stage: round(ms, 1) for stage, ms in self._stages.items()})


@dataclass(frozen=True, slots=True)
class Frame:
    """What every outcome of a question has in common. ``language`` says which one it was asked in.

    ``known`` are the versions of all parts; ``versions`` names those alone that had a part in this outcome. A part that
    can be replaced says with each result what it was, since it may be another by the time the answer is assembled.
    """

    request_id: str
    routed: Routed
    known: Versions
    versions: Versions
    watch: Stopwatch
    usage: Usage = field(default_factory=Usage)
    language: Callable[[], str] = declining.in_english

    def found_in(self, index: str) -> Frame:
        return replace(self, versions=self.versions.model_copy(update={"index": index}))

    def used(self, draft: Draft) -> Frame:
        usage = Usage(
            prompt_tokens=draft.prompt_tokens,
            completion_tokens=draft.completion_tokens,
            verified_pairs=draft.verified_pairs,
        )
        parts: dict[str, str] = {}
        if draft.version or draft.prompt_tokens or draft.completion_tokens:  # else nothing was to be chosen from
            parts["synthesizer"] = draft.version
        if draft.verified_pairs:
            parts["verifier"] = ", ".join(draft.verifiers)
        return replace(self, usage=usage).asked(**parts)

    def asked(self, **parts: str) -> Frame:
        """The frame with the versions of parts that were asked: what they say they are, else what they are known as."""
        said = {name: version or getattr(self.known, name) for name, version in parts.items()}
        return replace(self, versions=self.versions.model_copy(update=said))


def search(frame: Frame, results: Sequence[Passage]) -> Answer:
    """The results of a search route. No model was asked anything."""
    return _answer(frame, Outcome.SEARCH, results)


def declined(
    frame: Frame,
    passages: Sequence[Passage],
    reason: DeclineReason,
    cause: RefusalCause | None = None,
    dropped: Sequence[tuple[Reason, int]] = (),
) -> Answer:
    """A decline: no claims, no citations, the passages that were found."""
    decline = Decline(reason=reason, cause=cause, message=declining.message(cause or reason, frame.language()))
    return _answer(frame, Outcome.DECLINED, passages, decline=decline, dropped=dropped)


def answered(frame: Frame, passages: Sequence[Passage], admitted: Admitted, *, truncated: bool) -> Answer:
    """The answer rebuilt from proven claims, marked and validated. Raises a ``GroundingError`` if it does not hold."""
    text = admitted.text
    supports = [
        Support(
            span=shown.span,
            chunks=tuple(citation.chunk for citation in shown.judged.citations),
            confidences=tuple(citation.score for citation in shown.judged.citations),
        )
        for shown in admitted.claims
    ]
    metadata = grounding.metadata(text, supports, passages)
    grounding.validate(text, metadata)
    spans = grounding.spans_in_all_units(text, [shown.span for shown in admitted.claims])
    claims = tuple(
        ClaimOut(
            text=shown.statement.claim.text,
            span=in_all_units,
            citations=tuple(CitationOut.of(citation) for citation in shown.judged.citations),
            reason=shown.judged.reason,
        )
        for in_all_units, shown in zip(spans, admitted.claims, strict=True)
    )
    return _answer(
        frame,
        Outcome.ANSWERED,
        passages,
        text=text,
        marked_text=grounding.insert(text, supports),
        verified=admitted.verified and not truncated,
        truncated=truncated,
        claims=claims,
        grounding=metadata,
        dropped=admitted.dropped,
    )


def _answer(
    frame: Frame,
    outcome: Outcome,
    passages: Sequence[Passage],
    *,
    text: str = "",
    marked_text: str = "",
    verified: bool = False,
    truncated: bool = False,
    claims: tuple[ClaimOut, ...] = (),
    grounding: Grounding | None = None,
    dropped: Sequence[tuple[Reason, int]] = (),
    decline: Decline | None = None,
) -> Answer:
    return Answer(
        request_id=frame.request_id,
        outcome=outcome,
        text=text,
        marked_text=marked_text,
        verified=verified,
        truncated=truncated,
        claims=claims,
        grounding=grounding or Grounding(),
        dropped=tuple(Dropped(reason=reason, count=count) for reason, count in dropped),
        decline=decline,
        route=RouteOut(chosen=frame.routed.chosen, ran=frame.routed.ran, cue=frame.routed.cue),
        passages=tuple(PassageOut.of(passage) for passage in passages),
        usage=frame.usage,
        timings_ms=frame.watch.timings(),
        versions=frame.versions,
    )
