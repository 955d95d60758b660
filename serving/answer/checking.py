"""Checks a text that somebody else wrote against facts: which of its sentences do they prove?

The same guards, verifier and citations as for our own answers; only the text is taken as it is, and every span points
into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from serving.answer.direct import CheckedClaim
from serving.answer.leaning import in_context
from serving.answer.proving import Proving, strongest
from serving.answer.seams import Verifier
from serving.answer.sentences import split
from serving.answer.statements import Block, Statement
from serving.answer.text import content_words
from serving.answer.types import Citation, Claim, Deadline, Judged, Passage, Reason, Span

_LINE = re.compile(r"[^\r\n\u2028\u2029]+")
_BULLET = re.compile(r"\s*(?:#{1,6}\s+|>\s+|[-*+•]\s+|\d{1,3}[.)]\s+)*")
_MARKERS = re.compile(r"\s*\[\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*\]")


@dataclass(frozen=True, slots=True)
class Checked:
    """The claims of a text, in order, and how many pairs the verifier was asked."""

    claims: tuple[CheckedClaim, ...]
    pairs: int


async def check_text(
    text: str, facts: Sequence[Passage], *, verifier: Verifier, floor: float, deadline: Deadline
) -> Checked:
    """Judges every sentence of ``text`` against all ``facts``; each fact that is cited proves it, alone or with others.

    A claim whose citations score below ``floor`` (0 to 1) is below the floor and cites nothing. Raises what the
    verifier raises.
    """
    statements = in_context(list(_statements(text, len(facts))))
    checkable = [index for index, statement in enumerate(statements) if _states_something(statement.claim.text)]
    proving = Proving([statement.claim for statement in statements], facts, verifier, deadline)
    judged = await proving.judge(checkable) if facts else {}
    required = frozenset(checkable)
    claims = [
        _claim(text, statement.claim, judged.get(index), floor, required=index in required)
        for index, statement in enumerate(statements)
    ]
    return Checked(tuple(claims), proving.pairs)


def _statements(text: str, facts: int) -> Iterator[Statement]:
    """The sentences, line by line, each as a claim that cites every fact. Spans are code points of ``text``."""
    for number, line in enumerate(_LINE.finditer(text)):
        at = line.start() + len(_BULLET.match(line[0])[0])  # type: ignore[index]  # matches the empty string
        for sentence in split(text[at : line.end()]):
            said = sentence.strip()
            if said:
                begin = at + sentence.index(said)
                claim = Claim(_MARKERS.sub("", said).strip(), Span(begin, begin + len(said)), tuple(range(facts)))
                yield Statement(claim, Block.PARAGRAPH, number)
            at += len(sentence)


def _states_something(sentence: str) -> bool:
    return not sentence.rstrip("\"'”’»」』)").endswith(("?", "？")) and bool(content_words(sentence))


def _claim(text: str, claim: Claim, judged: Judged | None, floor: float, *, required: bool) -> CheckedClaim:
    begin, end = claim.span
    start = len(text[:begin].encode())
    said = text[begin:end]
    span = Span(start, start + len(said.encode()))
    if not required:
        return CheckedClaim(said, span, Reason.NOT_A_CLAIM, 0.0)
    if judged is None:
        return CheckedClaim(said, span, Reason.UNCITED, 0.0)
    against = strongest(verdict for _, verdict in judged.verdicts)
    if judged.proven:
        score = judged.citations[0].score
        if score < floor:
            return CheckedClaim(said, span, Reason.BELOW_FLOOR, score, contradiction=against)
        return CheckedClaim(said, span, Reason.ENTAILED, score, _sorted(judged.citations), contradiction=against)
    nearest = max((verdict for _, verdict in judged.verdicts), key=lambda verdict: verdict.score)
    words = next((verdict.words for _, verdict in judged.verdicts if verdict.reason is judged.reason), ())
    return CheckedClaim(said, span, judged.reason, nearest.score, words=words, contradiction=against)


def _sorted(citations: Sequence[Citation]) -> tuple[Citation, ...]:
    return tuple(sorted(citations, key=lambda citation: citation.chunk))
