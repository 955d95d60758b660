"""Which sentences of a passage can stand as a claim on their own, for the grammar that lets a model only quote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from serving.answer import sentences
from serving.answer.citations import parse
from serving.answer.leaning import leans
from serving.answer.prompt import with_marker
from serving.answer.text import content_words
from serving.answer.types import Passage

# Too short says nothing, too long is a paragraph whose stops were lost. In characters.
_LENGTH = range(20, 361)
_LEAST_WORDS = 3
_PARAGRAPH = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>>>)[ \t])|```")
_CODE_LIKE = re.compile(r">>>|[{}=|\\]{2}|https?://|^\s*[$#%]\s|\[\[|\]\(|-->|->")
_STARTS = re.compile(r"[A-Z0-9`\"'“(]")


def quotable(passages: Sequence[Passage], limit: int) -> list[tuple[int, str]]:
    """Up to ``limit`` pairs of a passage's number (from 1) and a sentence of it, best passage first, each once.

    White space is collapsed, none is left before the closing full stop, and a paragraph that ends without one gets one;
    nothing else is changed. A sentence that would not parse back to itself with its marker (it holds a bracketed
    number, say) is left out.
    """
    quotes: list[tuple[int, str]] = []
    seen: set[str] = set()
    for number, passage in enumerate(passages, start=1):
        for sentence in _sentences(passage.text):
            if sentence in seen or not _stands_alone(sentence, number, len(passages)):
                continue
            seen.add(sentence)
            quotes.append((number, sentence))
            if len(quotes) == limit:
                return quotes
    return quotes


def _sentences(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(text):
        *pieces, last = sentences.split(" ".join(paragraph.split())) or [""]
        for piece in pieces:
            yield _closed(piece.strip())
        last = _closed(last)
        # The summary line of a docstring often has no full stop.
        yield last if sentences.is_terminated(last) or not last[-1:].isalnum() else f"{last}."


def _closed(sentence: str) -> str:
    """Without the space before the full stop that tokenised text has: a marker is written there, after one space."""
    end = sentences.terminator_start(sentence)
    return f"{sentence[:end].rstrip()}{sentence[end:]}"


def _stands_alone(sentence: str, number: int, passages: int) -> bool:
    if len(sentence) not in _LENGTH or not sentences.is_terminated(sentence) or sentence.endswith(("?", ":")):
        return False
    if leans(sentence) or len(content_words(sentence)) < _LEAST_WORDS:
        return False
    if not _STARTS.match(sentence) or _CODE_LIKE.search(sentence):
        return False
    # Twice: it must also end where the next one begins, which "…the leftmost x. If…" does not.
    marked = with_marker(sentence, number)
    reply = parse(f"{marked} {marked}", passages)
    return [(s.claim.text, s.claim.chunks) for s in reply.statements] == [(sentence, (number - 1,))] * 2
