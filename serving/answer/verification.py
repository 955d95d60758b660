"""Checking claims: decompose a reply, check each claim against what it cites, correct to what is proven.

The order is fixed, and nothing is ever let through because a later step is missing: range check (the parser's) →
relevance to the question → guards → verifier on each cited passage → verifier on the cited set → prune to the smallest
sufficient citations. A guard may only reject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serving.answer.leaning import in_context, lost
from serving.answer.proving import Proving
from serving.answer.seams import Relevance, Verifier
from serving.answer.statements import Block, Reply, Statement
from serving.answer.text import content_words
from serving.answer.types import Claim, Deadline, Judged, Passage, Reason


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A reply's statements, split into those that can be checked and those that cannot, each in reply order."""

    checkable: tuple[Statement, ...]
    dropped: tuple[tuple[Statement, Reason], ...]


def decompose(reply: Reply) -> Decomposed:
    """Splits a reply into claims to check and statements to drop unseen.

    Headings and code are no claims here, nor are table rows without a header, questions back to the user or a sentence
    without a content word. A claim that cites nothing, or a passage that was not given, cannot be checked. Claims that
    lean on the sentence before them carry it as their context.
    """
    checkable: list[Statement] = []
    dropped: list[tuple[Statement, Reason]] = []
    seen: set[tuple[str, str]] = set()
    for statement in in_context(reply.statements):
        reason = _unfit(statement, seen)
        if reason is None:
            seen.add((statement.claim.text, statement.claim.context))
            checkable.append(statement)
        else:
            dropped.append((statement, reason))
    return Decomposed(tuple(checkable), tuple(dropped))


def _unfit(statement: Statement, seen: set[tuple[str, str]]) -> Reason | None:
    claim = statement.claim
    if claim.fabricated:
        return Reason.FABRICATED_CITATION
    if statement.kind not in (Block.PARAGRAPH, Block.ITEM) and not (
        statement.kind is Block.TABLE and statement.claim.context
    ):
        return Reason.NOT_A_CLAIM
    if claim.text.rstrip("\"'”’»」』)").endswith(("?", "？")) or not content_words(claim.text):
        return Reason.NOT_A_CLAIM
    if not claim.chunks:
        return Reason.UNCITED
    return Reason.REPEATED if (claim.text, claim.context) in seen else None


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking: one judgement a claim, in order, and how many pairs the verifier was asked."""

    judged: tuple[Judged, ...]
    pairs: int


async def check(
    claims: Sequence[Claim],
    passages: Sequence[Passage],
    *,
    question: str,
    verifier: Verifier,
    relevance: Relevance,
    deadline: Deadline,
) -> Checked:
    """Judges each claim against the passages it cites, read with its context. Any one that entails it suffices.

    ``claims[i].chunks`` index ``passages``; ``claims[i].context`` is what it leans on, as :func:`decompose` sets it,
    and may be from a sentence that is not among ``claims``. Raises what the seams raise: a verifier that is down is an
    incident.
    """
    bears = await relevance.relevant(question, claims, passages, deadline=deadline)
    pending = [index for index, does in enumerate(bears) if does]
    proving = Proving(claims, passages, verifier, deadline)
    judged = await proving.judge(pending)
    irrelevant = (Judged(claim, Reason.IRRELEVANT) for claim in claims)
    return Checked(tuple(judged.get(index, other) for index, other in enumerate(irrelevant)), proving.pairs)


@dataclass(frozen=True, slots=True)
class Corrected:
    """The survivors, in reply order, and why the others went. ``verified`` is false when anything was dropped."""

    kept: tuple[tuple[Statement, Judged], ...]
    dropped: tuple[tuple[Reason, int], ...]
    verified: bool


def correct(decomposed: Decomposed, judged: Sequence[Judged], *, floor: float) -> Corrected:
    """Keeps entailed claims whose best citation reaches the confidence ``floor`` (0 to 1) and drops the rest.

    A claim that leans on a dropped one is dropped too, and so is what leans on that.
    """
    kept: list[tuple[Statement, Judged]] = []
    counts: dict[Reason, int] = {}
    for _, reason in decomposed.dropped:
        counts[reason] = counts.get(reason, 0) + 1
    for statement, judgement in zip(decomposed.checkable, judged, strict=True):
        reason = judgement.reason
        if judgement.proven and max(citation.score for citation in judgement.citations) < floor:
            reason = Reason.BELOW_FLOOR
        elif judgement.proven and lost(statement, kept[-1][0] if kept else None):
            reason = Reason.LOST_CONTEXT
        if reason is Reason.ENTAILED:
            kept.append((statement, judgement))
        else:
            counts[reason] = counts.get(reason, 0) + 1
    return Corrected(tuple(kept), tuple(sorted(counts.items())), verified=bool(kept) and not counts)
