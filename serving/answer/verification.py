"""Checking claims: decompose a reply, check each claim against what it cites, correct to what is proven.

The order is fixed, cheapest first, and nothing is ever let through because a later step is missing: range check (the
parser's) → guards → relevance to the question → verifier on each cited passage → verifier on the cited set → prune to
the smallest sufficient citations. A guard may only reject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serving.answer.citations import Block, Reply, Statement
from serving.answer.guards import reject
from serving.answer.prompt import premise
from serving.answer.seams import Pair, Relevance, Verifier
from serving.answer.text import content_words
from serving.answer.types import Citation, Claim, Deadline, Judged, Passage, Reason, Verdict

JOINED = "\n\n"


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A reply's statements, split into those that can be checked and those that cannot, each in reply order."""

    checkable: tuple[Statement, ...]
    dropped: tuple[tuple[Statement, Reason], ...]


def decompose(reply: Reply) -> Decomposed:
    """Splits a reply into claims to check and statements to drop unseen.

    Headings, table rows and code are no claims here, nor are questions back to the user or a sentence without a content
    word. A claim that cites nothing, or a passage that was not given, cannot be checked.
    """
    checkable: list[Statement] = []
    dropped: list[tuple[Statement, Reason]] = []
    seen: set[str] = set()
    for statement in reply.statements:
        reason = _unfit(statement, seen)
        if reason is None:
            seen.add(statement.claim.text)
            checkable.append(statement)
        else:
            dropped.append((statement, reason))
    return Decomposed(tuple(checkable), tuple(dropped))


def _unfit(statement: Statement, seen: set[str]) -> Reason | None:
    claim = statement.claim
    if claim.fabricated:
        return Reason.FABRICATED_CITATION
    if statement.kind not in (Block.PARAGRAPH, Block.ITEM):
        return Reason.NOT_A_CLAIM
    if claim.text.rstrip("\"'”’»」』)").endswith(("?", "？")) or not content_words(claim.text):
        return Reason.NOT_A_CLAIM
    if not claim.chunks:
        return Reason.UNCITED
    return Reason.REPEATED if claim.text in seen else None


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
    """Judges each claim against the passages it cites. Any one that entails it suffices.

    ``claims[i].chunks`` index ``passages``. Raises what the seams raise: a verifier that is down is an incident.
    """
    premises = [premise(passage) for passage in passages]
    bears = await relevance.relevant(question, claims, passages, deadline=deadline)
    pending: list[int] = []
    judged: dict[int, Judged] = {}
    for index, claim in enumerate(claims):
        if bears[index]:
            pending.append(index)
        else:
            judged[index] = Judged(claim, Reason.IRRELEVANT)

    single = _Round([(index, (chunk,)) for index in pending for chunk in claims[index].chunks])
    await single.run(claims, premises, verifier, deadline)
    several = [index for index in pending if not single.entails(index) and len(claims[index].chunks) > 1]
    joint = _Round([(index, claims[index].chunks) for index in several])
    await joint.run(claims, premises, verifier, deadline)
    for index in pending:
        judged[index] = (
            single.judge(index, claims[index]) or joint.judge(index, claims[index]) or _reject(index, single)
        )
    return Checked(tuple(judged[index] for index in range(len(claims))), single.pairs + joint.pairs)


class _Round:
    """One batch of (claim, cited set) checks: guards first, then the verifier on those the guards let by."""

    def __init__(self, checks: list[tuple[int, tuple[int, ...]]]) -> None:
        self._checks = checks
        self.verdicts: dict[int, list[tuple[tuple[int, ...], Verdict]]] = {}
        self.claims: dict[int, Claim] = {}
        self.pairs = 0

    async def run(
        self, claims: Sequence[Claim], premises: Sequence[str], verifier: Verifier, deadline: Deadline
    ) -> None:
        asked: list[tuple[int, tuple[int, ...]]] = []
        pairs: list[Pair] = []
        for index, chunks in self._checks:
            self.claims[index] = claims[index]
            evidence = JOINED.join(premises[chunk] for chunk in chunks)
            rejected = reject(claims[index].text, evidence)
            if rejected is not None:
                self.verdicts.setdefault(index, []).append((chunks, Verdict(0.0, rejected)))
            else:
                asked.append((index, chunks))
                pairs.append(Pair(evidence, claims[index].text))
        self.pairs = len(pairs)
        if not pairs:
            return
        for (index, chunks), verdict in zip(asked, await verifier.verify(pairs, deadline=deadline), strict=True):
            self.verdicts.setdefault(index, []).append((chunks, verdict))

    def entails(self, index: int) -> bool:
        return any(verdict.reason is Reason.ENTAILED for _, verdict in self.verdicts.get(index, ()))

    def judge(self, index: int, claim: Claim) -> Judged | None:
        """The claim proven by its best-scoring set (the lowest numbers on a tie), or None when no set entails it."""
        proofs = [found for found in self.verdicts.get(index, ()) if found[1].reason is Reason.ENTAILED]
        if not proofs:
            return None
        chunks, verdict = max(proofs, key=lambda proof: (proof[1].score, [-chunk for chunk in proof[0]]))
        return Judged(claim, Reason.ENTAILED, tuple(Citation(chunk, verdict.score) for chunk in chunks))


def _reject(index: int, single: _Round) -> Judged:
    """Drops a claim for the reason of the passage that came nearest to proving it."""
    verdicts = [verdict for _, verdict in single.verdicts[index]]
    return Judged(single.claims[index], max(verdicts, key=lambda verdict: verdict.score).reason)


@dataclass(frozen=True, slots=True)
class Corrected:
    """The survivors, in reply order, and why the others went. ``verified`` is false when anything was dropped."""

    kept: tuple[tuple[Statement, Judged], ...]
    dropped: tuple[tuple[Reason, int], ...]
    verified: bool


def correct(decomposed: Decomposed, judged: Sequence[Judged], *, floor: float) -> Corrected:
    """Keeps entailed claims whose best citation reaches the confidence ``floor`` (0 to 1) and drops the rest."""
    kept: list[tuple[Statement, Judged]] = []
    counts: dict[Reason, int] = {}
    for _, reason in decomposed.dropped:
        counts[reason] = counts.get(reason, 0) + 1
    for statement, judgement in zip(decomposed.checkable, judged, strict=True):
        if judgement.proven and max(citation.score for citation in judgement.citations) >= floor:
            kept.append((statement, judgement))
        else:
            reason = Reason.BELOW_FLOOR if judgement.proven else judgement.reason
            counts[reason] = counts.get(reason, 0) + 1
    return Corrected(tuple(kept), tuple(sorted(counts.items())), verified=bool(kept) and not counts)
