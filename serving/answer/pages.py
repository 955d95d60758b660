"""What a parser writes: the clean text of a reply, byte by byte, and the statements found in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from serving.answer import blocks, sentences
from serving.answer.cleaning import Inline, Run, clean
from serving.answer.statements import Reply, Statement
from serving.answer.types import Claim, Span

_CUT_NUMBER = re.compile(r"\d[.．]\Z")


class Page:
    """Takes text and statements in reply order and keeps count of bytes."""

    def __init__(self, passages: int) -> None:
        self._passages = passages
        self._text: list[str] = []
        self._bytes = 0
        self._statements: list[Statement] = []
        self._released = 0
        self._fabricated: list[str] = []
        self._years: list[str] = []

    def reply(self) -> Reply:
        return Reply("".join(self._text), tuple(self._statements), tuple(self._fabricated), tuple(self._years))

    def release(self) -> list[Statement]:
        """The statements added since the last call."""
        fresh = self._statements[self._released :]
        self._released = len(self._statements)
        return fresh

    def write(self, text: str) -> None:
        """Adds text that is no claim."""
        self._text.append(text)
        self._bytes += size(text)

    def verbatim(self, text: str, like: Statement) -> None:
        """Adds a claim that is not looked into (code). ``like`` says what it is; its claim's ``complete`` counts."""
        self._add(text, (), like)

    def whole(self, source: str, like: Statement) -> str:
        """Adds one claim that is not cut into sentences (a heading, a table row); returns its clean text."""
        found = clean(source, self._passages)
        self._report(found.runs)
        if found.text.strip():
            self._add(found.text, found.runs, like)
        return found.text

    def unclaimed(self, source: str) -> str:
        """Adds text freed of markers that is no claim (a table's header); returns it."""
        found = clean(source, self._passages)
        self._report(found.runs)
        self.write(found.text)
        return found.text

    def sentences(self, found: Inline, ends: Sequence[int], like: Statement, *, last_complete: bool) -> None:
        """Adds the sentences of a block up to each of ``ends``.

        A marker run belongs to the sentence that the last character before it stands in. The last one is complete when
        it is terminated or ``last_complete``.
        """
        at = next_run = 0
        runs = found.runs
        for end in ends:
            first = next_run
            while next_run < len(runs) and runs[next_run].at <= end:
                next_run += 1
            mine = runs[first:next_run]
            self._report(mine)
            sentence = found.text[at:end].rstrip()
            lead = 0 if sentence[:1].isalpha() else blocks.syntax(sentence)
            while lead and (more := blocks.syntax(sentence[lead:])):
                lead += more
            if lead:
                self.write(sentence[:lead])
            body = sentence[lead:]
            if body:
                complete = True
                if end == ends[-1] and not last_complete:
                    marked = bool(mine) and mine[-1].at >= at + len(sentence) - 1
                    complete = sentences.is_terminated(body) and (marked or not _CUT_NUMBER.search(body))
                self._add(body, [run for run in mine if run.at > at], like, complete=complete)
            if end < len(found.text):
                self.write(found.text[at + len(sentence) : end])
            at = end

    def _report(self, runs: Sequence[Run]) -> None:
        for run in runs:
            if run.named.fabricated:
                self._fabricated.extend(run.named.fabricated)
            if run.named.years:
                self._years.extend(run.named.years)

    def _add(self, text: str, runs: Sequence[Run], like: Statement, *, complete: bool | None = None) -> None:
        start = self._bytes
        self.write(text)
        chunks: tuple[int, ...] = ()
        fabricated: tuple[str, ...] = ()
        if len(runs) == 1:
            chunks, fabricated = tuple(sorted(runs[0].named.chunks)), runs[0].named.fabricated
        elif runs:
            chunks = tuple(sorted({chunk for run in runs for chunk in run.named.chunks}))
            fabricated = tuple(number for run in runs for number in run.named.fabricated)
        claim = Claim(
            text, Span(start, self._bytes), chunks, fabricated, like.claim.complete if complete is None else complete
        )
        self._statements.append(Statement(claim, like.kind, like.block, like.prefix, like.group, like.context))


def size(text: str) -> int:
    """Bytes of ``text`` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
