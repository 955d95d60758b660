"""A text as the guards read it: words, numbers and symbols in order, by sentence. One pass, linear time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from serving.answer import sentences
from serving.answer.text import STOP_WORDS, stem


class Kind(Enum):
    WORD = "word"
    NUMBER = "number"
    SYMBOL = "symbol"


class Token(NamedTuple):
    """A word, a number with what is written on to it (``20th``, ``5km``), or one symbol.

    ``text`` keeps its case, ``folded`` does not; ``stem`` is empty for symbols. ``start`` and ``end`` are code points
    of :attr:`Reading.text`; ``sentence`` numbers the sentences of the text from 0.
    """

    kind: Kind
    text: str
    folded: str
    stem: str
    start: int
    end: int
    sentence: int

    @property
    def is_content(self) -> bool:
        """Whether the token carries meaning: no function word, no symbol."""
        return bool(self.stem) and self.folded not in STOP_WORDS


# Digits with separators, in the forms of English, French, Swiss and German, then whatever else is glued to digits.
_NUMBER = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.,]\d|\d)"
    r"|\d{1,3}(?:[ '’]\d{3})+(?:[.,]\d+)?(?![\d.,]\d|\d)"
    r"|\d+(?:[.,:/⁄]\d+)*"
    r"|(?<![\w.])\.\d+"
)
_TOKEN = re.compile(
    rf"(?P<number>(?:{_NUMBER})(?:[^\W\d_]\w{{0,15}})?)"
    r"|(?P<word>\w+(?:['’]\w+)*)"
    r"|(?P<symbol>[^\w\s])"
)
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_POSSESSIVE = re.compile(r"['’]s?$")


class Reading:
    """A text, read once. Build it once for evidence that several claims are judged against."""

    def __init__(self, text: str) -> None:
        self.text = unicodedata.normalize("NFKC", text)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(token for sentence in self.sentences for token in sentence.tokens)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        found: list[Sentence] = []
        at = 0
        for end in (*sentences.ends(self.text, breaks=_breaks(self.text)), len(self.text)):
            tokens = tuple(_tokens(self.text[at:end], at, len(found)))
            at = end
            if tokens:
                found.append(Sentence(tokens))
        return tuple(found)

    @cached_property
    def folded(self) -> frozenset[str]:
        return frozenset(token.folded for token in self.tokens)


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence's tokens, in order."""

    tokens: tuple[Token, ...]

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(token.stem for token in self.tokens if token.stem)

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of the words that carry meaning."""
        return frozenset(token.stem for token in self.tokens if token.is_content)

    @cached_property
    def folded(self) -> frozenset[str]:
        return frozenset(token.folded for token in self.tokens)


def _breaks(text: str) -> list[int]:
    """Where a sentence ends without a full stop: at empty lines, and after a premise's first line, its title."""
    first = text.find("\n")
    title = [first] if first >= 0 else []
    return sorted({*title, *(match.start() for match in _EMPTY_LINE.finditer(text))})


def _tokens(piece: str, at: int, sentence: int) -> Iterable[Token]:
    for match in _TOKEN.finditer(piece):
        kind = Kind(match.lastgroup)
        text = match[0]
        folded = text.casefold().replace("’", "'")
        stemmed = "" if kind is Kind.SYMBOL else stem(_POSSESSIVE.sub("", folded))
        yield Token(kind, text, folded, stemmed, at + match.start(), at + match.end(), sentence)


def closest(stems: frozenset[str], evidence: Reading, *, least: float) -> tuple[Sentence, ...]:
    """The evidence's sentences that share most of ``stems``, none when the best shares less than ``least`` of them."""
    if not stems:
        return ()
    shared = [len(stems & sentence.content) for sentence in evidence.sentences]
    best = max(shared, default=0)
    if best == 0 or best < least * len(stems):
        return ()
    return tuple(sentence for sentence, count in zip(evidence.sentences, shared, strict=True) if count == best)
