"""A question as the routing rules read it: folded words and sentence marks, one space apart.

The rules are English. Text in another language matches none of them and goes where everything ambiguous goes.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

WH_WORDS = frozenset(["what", "who", "whom", "whose", "which", "when", "where", "why", "how"])
_POSITIVE = "am is are was were do does did has have had can could will would shall should may might must".split()
AUXILIARIES = frozenset(_POSITIVE) | {f"{word}n't" for word in _POSITIVE} | {"can't", "won't", "shan't", "ain't"}
REQUESTS = frozenset(
    """analyse analyze calculate define describe discuss evaluate explain find give identify list name outline show
    summarise summarize tell""".split()
)

# A longer run without a space is no word. Normalising one is quadratic when it is all combining marks.
_LONGEST_WORD = 256
_MARKS = ".,;:?!"
_AROUND_WORDS = "\"'()[]{}<>*_" + _MARKS
_LOOKALIKES = str.maketrans({"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "؟": "?", "⸮": "?", "¿": "?"})


@dataclass(frozen=True, slots=True)
class Reading:
    """``text`` is the question in NFKC, runs of space made one. ``names`` are its words without the punctuation around
    them, ``words`` the same case-folded. ``line`` is the words and the sentence marks after them, each followed by one
    space and the first preceded by one, for patterns such as ``" vs "``.
    """

    text: str
    names: tuple[str, ...]
    words: tuple[str, ...]
    line: str

    @property
    def opener(self) -> str:
        """The question word, auxiliary or request that it opens with; empty when it opens with none."""
        first = self.words[0] if self.words else ""
        if first not in AUXILIARIES:
            first = first.partition("'")[0]
        return first if first in WH_WORDS | AUXILIARIES | REQUESTS else ""

    @property
    def asks(self) -> bool:
        """Whether it has the form of a question: opens like one, or has a question mark that ends a word."""
        return self.opener in WH_WORDS | AUXILIARIES or " ? " in self.line


def read(question: str) -> Reading:
    """Reads any string, in time linear in its length."""
    pieces = " ".join(_normalised(piece) for piece in question.split()).split()
    names: list[str] = []
    tokens: list[str] = []
    for piece in pieces:
        name = piece.strip(_AROUND_WORDS)
        if name:
            names.append(name)
            tokens.append(name.casefold())
        tail = piece[len(piece.rstrip(_AROUND_WORDS)) :]
        tokens.extend(mark for mark in _MARKS if mark in tail)
    return Reading(" ".join(pieces), tuple(names), tuple(map(str.casefold, names)), f" {' '.join(tokens)} ")


def _normalised(piece: str) -> str:
    normal = unicodedata.normalize("NFKC", piece) if len(piece) <= _LONGEST_WORD else piece
    return normal.translate(_LOOKALIKES)
