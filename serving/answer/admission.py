"""What joins the proven claims in an answer: table headers, headings, code. The last decision before the text is made.

A table row is shown only if every content word of its header stands in the passages it cites or in the question; the
row is dropped otherwise, since without its header it would say something else. A heading is shown only above a shown
claim, if the same holds of its words for that claim's passages and it negates nothing. Both are plain words. Code is
shown only verbatim from a passage that the shown claim before it cites. Neither carries a support of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from serving.answer.prompt import premise
from serving.answer.rebuilding import rebuild
from serving.answer.statements import Block, Reply, Statement
from serving.answer.text import content_words, normalise
from serving.answer.types import Judged, Passage, Reason, Span
from serving.answer.urls import foreign_urls
from serving.answer.verification import Corrected

_PLAIN = re.compile(r"[\w\s.,:;'’\"()/&+%*|$€£°–—-]{1,200}")
_NEGATIONS = frozenset("not no never none neither nor cannot without".split())


@dataclass(frozen=True, slots=True)
class Shown:
    """A claim in the answer: where it stands (UTF-8 bytes of the text) and what proves it."""

    statement: Statement
    judged: Judged
    span: Span


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer's text, its claims in order, and why the others went. Not ``verified`` when anything was dropped."""

    text: str
    claims: tuple[Shown, ...]
    dropped: tuple[tuple[Reason, int], ...]
    verified: bool


def admit(reply: Reply, corrected: Corrected, passages: Sequence[Passage], question: str) -> Admitted:
    """Decides what is shown of a reply whose claims were judged, and lays it out."""
    words = _Words(passages, question)
    proven: dict[int, tuple[Statement, Judged]] = {}
    for statement, judged in corrected.kept:
        if statement.kind is not Block.TABLE or words.cover(statement.context, judged):
            proven[statement.claim.span.start] = (statement, judged)
    entries = list(_entries(reply, proven, words, passages))
    rebuilt = rebuild([statement for statement, _ in entries], len(passages))
    claims: list[Shown] = []
    restored = 0
    for placed in rebuilt.placed:
        statement, judgement = entries[placed.index]
        if judgement is None:
            restored += 1
        else:
            claims.append(Shown(statement, judgement, placed.span))
    counts = Counter(dict(corrected.dropped))
    counts[Reason.NOT_A_CLAIM] -= restored
    counts[Reason.NOT_ENTAILED] += len(corrected.kept) - len(proven)
    counts[Reason.NOT_A_CLAIM] += len(proven) - len(claims)  # does not read back: see rebuild
    dropped = tuple(sorted((+counts).items()))
    if not claims:
        return Admitted("", (), dropped, verified=False)
    return Admitted(rebuilt.text, tuple(claims), dropped, verified=not dropped)


class _Words:
    """The content words of passages and question, each counted once."""

    def __init__(self, passages: Sequence[Passage], question: str) -> None:
        self._passages = passages
        self._question = frozenset(content_words(question))
        self._of: dict[int, frozenset[str]] = {}

    def cover(self, text: str, judged: Judged) -> bool:
        """Whether ``text`` is plain words whose content words all stand in the question or in what proves the claim.

        An address has to stand there whole, and in what proves the claim: the question is no source of addresses.
        """
        if not _PLAIN.fullmatch(text) or not unicodedata.is_normalized("NFKC", text):
            return False
        if foreign_urls(text, [self._passages[citation.chunk] for citation in judged.citations]):
            return False
        words = set(content_words(text))
        held = {word for citation in judged.citations for word in self._in(citation.chunk)}
        return bool(words) and words - self._question <= held

    def _in(self, chunk: int) -> frozenset[str]:
        if chunk not in self._of:
            self._of[chunk] = frozenset(content_words(premise(self._passages[chunk])))
        return self._of[chunk]


def _entries(
    reply: Reply, proven: dict[int, tuple[Statement, Judged]], words: _Words, passages: Sequence[Passage]
) -> Iterator[tuple[Statement, Judged | None]]:
    """The proven claims in reply order, with the headings and the code that may stand among them."""
    headings: list[Statement] = []
    above: Judged | None = None
    for statement in reply.statements:
        found = proven.get(statement.claim.span.start)
        if found is not None:
            yield from ((heading, None) for heading in headings if _may_head(heading, found[1], words))
            headings.clear()
            above = found[1]
            yield found
        elif statement.kind is Block.HEADING:
            level = _level(statement)
            headings = [*(heading for heading in headings if _level(heading) < level), statement]
        elif statement.kind is Block.CODE and above is not None and _is_quoted(statement, above, passages):
            yield statement, None


def _level(heading: Statement) -> int:
    return heading.prefix.count("#")


def _may_head(heading: Statement, judged: Judged, words: _Words) -> bool:
    text = heading.claim.text
    negates = not _NEGATIONS.isdisjoint(normalise(text).split()) or "n't" in text.replace("’", "'")
    return not negates and not heading.claim.fabricated and words.cover(text, judged)


def _is_quoted(code: Statement, judged: Judged, passages: Sequence[Passage]) -> bool:
    """Whether a complete fenced block stands, letter for letter, in a passage that the claim above it cites."""
    fenced = code.prefix[:1] in ("`", "~") and code.claim.complete
    return fenced and any(code.claim.text in passages[citation.chunk].text for citation in judged.citations)
