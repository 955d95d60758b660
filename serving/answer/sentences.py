"""Sentence boundaries: `sentencex`, repaired where it cuts inside an identifier, a number or a quotation.

``"".join(split(text)) == text``, always: a splitter that loses or moves text would move every span after it.
"""

from __future__ import annotations

import re

import sentencex

# The segmenter's rules differ by language mostly in their abbreviations. English's are the widest, and its terminators
# include the full-width and Devanagari ones.
_LANGUAGE = "en"

_TERMINATORS = ".!?…。！？｡．।"  # full-width forms are the point
_CLOSERS = "\"'”’»)]」』）】"
_ENDS_IN_TERMINATOR = re.compile(rf"[{re.escape(_TERMINATORS)}][{re.escape(_CLOSERS)}]*\s*\Z")
_SENTENCE_START = re.compile(r"[\w\"'“‘«(\[「『（`*_¿¡]")


def split(text: str) -> list[str]:
    """Cuts ``text`` into sentences, each with the white space that follows it. Linear in ``len(text)``."""
    pieces: list[str] = []
    for piece in sentencex.segment(_LANGUAGE, text):
        if pieces and _cut_too_early(pieces[-1], piece):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces


def is_terminated(sentence: str) -> bool:
    """Whether the sentence ends in a terminator, closing quotes and brackets apart."""
    return _ENDS_IN_TERMINATOR.search(sentence[-16:]) is not None


def _cut_too_early(left: str, right: str) -> bool:
    """Whether the boundary between two neighbouring pieces is none."""
    last, first = left[-1], right[0]
    if last.isspace() or first.isspace():
        return not right.strip()
    if last == ".":  # ``whose .__next__()``, ``os.path``: no space follows, so no sentence ended
        return True
    if last == "．":  # the full-width decimal point of ``３．１４``
        return first.isdigit()
    # ``「やめろ。」と言った。``: the quotation is a part of the sentence that goes on after it.
    return last in "」』" and _SENTENCE_START.match(first) is not None and first not in "「『"


def terminator_start(sentence: str) -> int:
    """The offset at which the closing run of a sentence (terminators and closing quotes) begins.

    ``len(sentence)`` when it has none. Markers are written there: ``He said "stop [1]."``.
    """
    at = len(sentence)
    seen_terminator = False
    while at and (sentence[at - 1] in _TERMINATORS or sentence[at - 1] in "\"'”’»」』"):
        seen_terminator = seen_terminator or sentence[at - 1] in _TERMINATORS
        at -= 1
    return at if seen_terminator and at else len(sentence)
