"""Showing claims before the reply is whole: those that are in the answer however the reply goes on.

A claim is certain once it and every claim before it is judged, it is proven, nothing it leans on was dropped, and it
reads back standing alone, which is what :mod:`serving.answer.rebuilding` asks of it at the least. Table rows wait for
the end, since their header must be borne out first, and so does all that follows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serving.answer.rebuilding import rebuild
from serving.answer.statements import Block, Reply, Statement
from serving.answer.types import Claim, Judged, Span
from serving.answer.verification import Decomposed, correct, decompose


def question_of(claim: Claim) -> Claim:
    """What a verdict depends on: the words, their context and the passages, not where they stand."""
    return Claim(claim.text, Span(0, 0), claim.chunks, context=claim.context)


def certain(
    statements: Sequence[Statement], verdicts: Mapping[Claim, Judged], *, passages: int, floor: float
) -> tuple[tuple[Statement, Judged], ...]:
    """The claims of a reply's first ``statements`` that its answer will show, in order, each with what proves it.

    ``verdicts`` are by :func:`question_of` the claim. More statements and more verdicts give the same claims and others
    after them. None is certain that comes after a citation of a passage that was not given.
    """
    checkable: list[Statement] = []
    judged: list[Judged] = []
    for statement in decompose(Reply("", _before_fabricated(statements))).checkable:
        verdict = verdicts.get(question_of(statement.claim))
        if verdict is None or statement.kind is Block.TABLE:
            break
        if verdict.proven and not rebuild([statement], passages).placed:
            break
        checkable.append(statement)
        judged.append(Judged(statement.claim, verdict.reason, verdict.citations, verdict.verdicts))
    return correct(Decomposed(tuple(checkable), ()), judged, floor=floor).kept


def _before_fabricated(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    first = next((at for at, statement in enumerate(statements) if statement.claim.fabricated), len(statements))
    return tuple(statements[:first])
