"""Sentence boundaries, decided from left to right with a bounded look ahead, so that a streamed text is cut as a whole.

A boundary depends on the sentence so far and on the next word, never on what was cut before or on how the text ends. In
doubt two sentences stay one: a claim that says two things needs proof of both, while half a sentence may be proven and
say something else. ``"".join(split(text)) == text``, always.

This is ours, and not a library's, because a claim is cut here: a streamed sentence must be final when it is given out,
the markers that were taken out say where a model ended its sentences, and doubt must fall on the safe side. Segmenters
(sentencex, pySBD, punkt) take a finished text, know no markers, and in doubt they cut. A test compares the cuts with
sentencex's on encyclopedia text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from serving.answer.abbreviations import BEFORE_NUMBERS, MAYBE_LAST, MONTHS, NEVER_LAST, STARTERS

_WIDE = "。！？｡．।۔؟"  # full-width and other scripts' terminators need no space after them
_NARROW = ".!?…"
TERMINATORS = _WIDE + _NARROW
_CLOSERS = "\"'”’»)]」』）】*_"
_OPENING = {"“": "”", '"': '"', "「": "」", "『": "』", "（": "）", "(": ")", "«": "»"}
_CLOSING = frozenset(_OPENING.values())
_LONGEST_ASIDE = 240
"""Characters after which a quotation or bracket that was not closed is taken for a stray one."""

_CLOSER_CLASS = re.escape(_CLOSERS)
_EVENT = re.compile(
    rf"[{re.escape(_NARROW)}]++[{_CLOSER_CLASS}]*+(?=\s|\Z)"
    rf"|[{_NARROW}]*+[{_WIDE}]++[{re.escape(TERMINATORS)}]*+[{_CLOSER_CLASS}]*+"
    r"|[“”\"「」『』（）()«»]"
)
_ENDS_IN_TERMINATOR = re.compile(rf"[{re.escape(TERMINATORS)}][{_CLOSER_CLASS}]*\s*\Z")
_SPACE = re.compile(r"\s*+")
_OPENERS = re.compile(r"[\"'“‘«(\[「『（¿¡*_]{0,8}")
_WORD = re.compile(r"[^\W\d_]{1,12}")
_BEFORE_WORD = re.compile(r"[\s(\[\"'“‘«*_/—–（「『]")
_LONGEST_WORD = 40
_LONGEST_CLOSING = 12
"""Terminators and closing quotes at the end of a sentence; a longer run is no punctuation."""
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_ABBREVIATIONS = NEVER_LAST | MAYBE_LAST
_MAY_VANISH = "([（"  # with the markers that they turn out to hold
_GOES_ON = "–—-&=/,;:"
_ROMAN = re.compile(r"[IVXLC]+\b|[A-Z]\b")


def split(text: str) -> list[str]:
    """Cuts ``text`` into sentences, each with the white space that follows it. Linear in ``len(text)``."""
    pieces: list[str] = []
    at = 0
    for end in ends(text):
        pieces.append(text[at:end])
        at = end
    if at < len(text):
        pieces.append(text[at:])
    return pieces


def ends(text: str, *, marked: Collection[int] = (), breaks: Collection[int] = (), final: bool = True) -> Iterator[int]:
    """Yields where each sentence ends, its white space included, but for the last one.

    ``marked`` are the offsets at which markers stood: a full stop beside one ends a sentence whatever comes next.
    ``breaks`` are offsets at which a sentence ends in any case. Unless ``final``, more text may follow, and only what
    none could change is yielded.
    """
    start = 0
    certain = len(text) if final else _certain(text)
    asides: list[tuple[str, int]] = []  # open quotations and brackets: what closes each, where it began
    events = ((match.start(), match[0]) for match in _EVENT.finditer(text))
    for at, event in _merged(events, sorted(breaks)) if breaks else events:
        if at < start:
            continue
        if not event:
            start = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # matches the empty string
            if start == len(text) or not (final or _is_decided(text, start, certain)):
                return
            asides.clear()
            yield start
            continue
        if event in _OPENING or event in _CLOSING:
            _track(text, start, at, asides)
            continue
        stop = at + len(event.rstrip(_CLOSERS))
        end = at + len(event)
        for offset in range(stop, end):
            _track(text, start, offset, asides)
        while asides and at - asides[-1][1] > _LONGEST_ASIDE:
            asides.pop()
        following = _SPACE.match(text, end).end()  # type: ignore[union-attr]  # matches the empty string
        if following == len(text) or not (final or _is_decided(text, following, certain)):
            return
        hinted = (at in marked and at > start) or stop in marked or end in marked
        if not asides and _ends_sentence(text, start, (at, stop, end, following), hinted=hinted):
            start = following
            yield start


def _merged(events: Iterator[tuple[int, str]], breaks: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The events of a text with its forced breaks (as empty strings), in order."""
    at = 0
    for start, event in events:
        done = 0
        while at < len(breaks) and breaks[at] < start + len(event):
            before = max(done, breaks[at] - start)
            if before > done:  # a run of terminators on both sides of a break is two
                yield start + done, event[done:before]
            yield breaks[at], ""
            done = before
            at += 1
        yield start + done, event[done:]
    for offset in breaks[at:]:
        yield offset, ""


def _certain(text: str) -> int:
    """Up to where a text to be continued keeps what it holds."""
    at = len(text)
    while at and (text[at - 1].isspace() or text[at - 1] in _MAY_VANISH):
        at -= 1
    return at


def _is_decided(text: str, following: int, certain: int) -> bool:
    """Whether the word that follows a terminator is there before ``certain``, or as much of it as is looked at."""
    opened = _OPENERS.match(text, following).end()  # type: ignore[union-attr]  # matches the empty string
    word = _WORD.match(text, opened)
    return (word.end() if word else opened + 1) < certain


def _track(text: str, start: int, at: int, asides: list[tuple[str, int]]) -> None:
    """Opens or closes an aside at a mark of the sentence that begins at ``start``."""
    mark = text[at]
    if asides and asides[-1][0] == mark:
        asides.pop()
    elif mark == '"':  # one that neither closes nor follows a space is an inch, or a stray
        if at == start or text[at - 1].isspace() or text[at - 1] in "([（「":
            asides.append((mark, at))
    elif mark in _OPENING:
        asides.append((_OPENING[mark], at))


def _ends_sentence(text: str, start: int, where: tuple[int, int, int, int], *, hinted: bool) -> bool:
    """Whether a sentence ends at a terminator: ``where`` it begins, ends, its closers end, and the text goes on."""
    at, stop, end, following = where
    last = text[stop - 1]
    if last in _WIDE or following == end:
        decimal = last == "．" and text[end].isdigit()  # ``３．１４``
        # ``「やめろ。」と言った。``: the quotation is a part of the sentence that goes on after it.
        return following > end or (not decimal and (end == stop or text[end] in _OPENING))
    word = _BEFORE_WORD.split(text[max(start, at - _LONGEST_WORD) : at])[-1]
    if hinted and word.casefold() not in _ABBREVIATIONS:
        return True
    opened = _OPENERS.match(text, following).end()  # type: ignore[union-attr]  # matches the empty string
    first = text[opened : opened + 1]
    if not first or first in _GOES_ON or first.islower():
        return False
    return last != "." or stop - at > 1 or _word_may_end(word, text, opened, alone=at - len(word) <= start)


def _word_may_end(word: str, text: str, following: int, *, alone: bool) -> bool:
    """Whether ``word`` and its full stop end a sentence, when what follows could begin one."""
    lower = word.casefold()
    if lower in NEVER_LAST:
        return False
    found = _WORD.match(text, following)
    following_word = found[0].casefold() if found else ""
    starts = following_word in STARTERS
    if lower in BEFORE_NUMBERS:
        digit = text[following].isdigit() or _ROMAN.match(text, following) is not None
        return starts or (lower == "no" and not digit)
    if lower in MAYBE_LAST or _INITIALS.fullmatch(word):
        return starts
    if len(word) == 1 and word.isupper():  # ``J. K. Rowling``
        return starts
    if word.isdecimal() and len(word) <= 2:  # ``1. Install it``, ``am 3. Oktober``
        return not alone and starts and following_word not in MONTHS
    return not (word.isdecimal() and alone)


def is_terminated(sentence: str) -> bool:
    """Whether the sentence ends in a terminator, closing quotes and brackets apart."""
    return _ENDS_IN_TERMINATOR.search(sentence[-16:]) is not None


def terminator_start(sentence: str) -> int:
    """The offset at which the closing run of a sentence (terminators and closing quotes) begins.

    ``len(sentence)`` when it has none. Markers are written there: ``He said "stop [1]."``.
    """
    at = len(sentence)
    least = max(0, at - _LONGEST_CLOSING)
    seen_terminator = False
    while at > least and (sentence[at - 1] in TERMINATORS or sentence[at - 1] in "\"'”’»」』"):
        seen_terminator = seen_terminator or sentence[at - 1] in TERMINATORS
        at -= 1
    return at if seen_terminator and at > least else len(sentence)
