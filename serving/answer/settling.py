"""Settling: what became of a draft. Answered, declined, refused, or too late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serving.answer import assembling, verification
from serving.answer.admission import Admitted, admit
from serving.answer.drafts import Draft
from serving.answer.errors import DeadlineExceededError, GroundingError, UnavailableError
from serving.answer.events import Event, Finished, Proven, Withheld
from serving.answer.policy import OnFabrication, Policy
from serving.answer.types import DeclineReason, Passage, RefusalCause


def settle(
    frame: assembling.Frame,
    question: str,
    passages: Sequence[Passage],
    draft: Draft,
    *,
    policy: Policy,
) -> Iterator[Event]:
    """The events that end a question: the claims that were not released before, what was dropped, the answer.

    Raises :class:`DeadlineExceededError` when nothing was proven in time, :class:`UnavailableError` when the model's
    server did not keep to a grammar that claims were released under.
    """
    if draft.declines:
        yield Finished(assembling.declined(frame, passages, DeclineReason.NOT_IN_PASSAGES))
        return
    if draft.reply.fabricated and policy.on_fabrication is OnFabrication.REFUSE:
        if draft.released:
            raise UnavailableError("the model's server let it write what the grammar excludes; its answer is withdrawn")
        cause = RefusalCause.FABRICATED_CITATION
        yield Finished(assembling.declined(frame, passages, DeclineReason.REFUSED, cause))
        return
    corrected = verification.correct(draft.decomposed, draft.judged, floor=policy.confidence_floor)
    admitted = admit(draft.reply, corrected, passages, question)
    if not admitted.claims and draft.late:
        raise DeadlineExceededError("the deadline passed before a claim was proven; allow more time")
    if not draft.cites:
        yield Finished(assembling.declined(frame, passages, DeclineReason.REFUSED, RefusalCause.UNGROUNDED))
        return
    yield from _unreleased(admitted, draft)
    for reason, count in admitted.dropped:
        yield Withheld(reason, count)
    if admitted.claims:
        truncated = draft.cut_short or draft.late
        yield Finished(assembling.answered(frame, passages, admitted, truncated=truncated))
    else:
        nothing = DeclineReason.NOTHING_PROVEN
        yield Finished(assembling.declined(frame, passages, nothing, dropped=admitted.dropped))


def _unreleased(admitted: Admitted, draft: Draft) -> Iterator[Proven]:
    """The claims of the answer after those that were shown early. Raises ``GroundingError`` if these are not first."""
    shown = [Proven(claim.statement.claim.text, claim.judged.citations) for claim in admitted.claims]
    early = [Proven(judged.claim.text, judged.citations) for judged in draft.released]
    if shown[: len(early)] != early:
        raise GroundingError("claims that were shown early are not the first of the answer; this is a bug")
    yield from shown[len(early) :]
