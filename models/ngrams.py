"""A text as hashed n-grams of its characters, of its words and of its skeleton, for a linear model.

The skeleton is the text without its topic: function words stand as they are, every other word is one sign (``x``; by
its ending ``xer``, ``xest``; ``9`` with a digit). ``which x was x first , x or x ?`` is the same whatever it is about.
Two more of its grams say how many words there are and with which function word the text opens.

The hash is fixed here and does not change between processes, machines or versions of Python. Only the head and the
tail of a long text are read, so that any text takes bounded time.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint64]
Floats = NDArray[np.float32]

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_PRIME: Final = np.uint64(0x100000001B3)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
FUNCTION_WORDS = frozenset(
    """
    a about according after ago all along also although always among an and another any are aren't as at be became
    because become been before began being besides between both but by can can't compare compared could couldn't define
    describe did didn't differ difference differences discuss do does doesn't don't during each earlier either ever
    every explain few fewer first following for from had has have he her hers him his how i if in instead into is
    isn't it its itself last later latest least less list many may me might more most much must my name named near
    neither never next nor not now of off often on once one only or other our out over own pros cons respectively same
    second share shall she should shouldn't similar similarities since so some still such tell than that the their
    them then there these they third this those through to together too top two three four five six seven eight nine
    ten under until up us versus very vs was wasn't we were weren't what what's when where where's whether which while
    who who's whom whose why will with within without won't would wouldn't you your
    """.split()
)
_LAST_MARKS = " .?!;,:؟"
_COUNTS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 28)
"""The word counts at which a bucket ends."""


def _code(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


_FUNCTION_CODES = {word: _code(f"={word}") for word in FUNCTION_WORDS}
_SHAPE_CODES = {shape: _code(shape) for shape in ("x", "xer", "xest", "9")}


@dataclass(frozen=True, slots=True)
class Hashed:
    """The buckets of a text's n-grams, with repeats, and what each weighs. The first ``letters`` are of characters."""

    buckets: NDArray[np.int64]
    weights: Floats
    letters: int


@dataclass(frozen=True, slots=True)
class Grams:
    """Which n-grams are hashed, and into how many buckets: ``2 ** bits``. Ranges include both ends.

    Characters are of the whole text. Words and skeleton leave out the marks at its end: whether people type them says
    that a text is a question, and nothing of what it takes to answer it.

    An n-gram weighs 1 / sqrt(n of its kind). Characters tell a name from words; in a text of more than ``short`` words
    they tell what it is about, and weigh less, by ``short / words``. Words weigh ``word_weight`` times as much.
    """

    characters: tuple[int, int] = (2, 5)
    words: tuple[int, int] = (1, 2)
    skeleton: tuple[int, int] = (1, 4)
    bits: int = 18
    short: float = 3.0
    word_weight: float = 0.5
    head: int = 384
    tail: int = 128
    """Characters that are read of each end of a text that is longer than both together."""

    def hashed(self, text: str) -> Hashed:
        """The n-grams of any text: at least one of characters and one of its form, the empty text's too."""
        found = fold(text, self.head, self.tail)
        pieces = _WORD.findall(found.rstrip(_LAST_MARKS))
        codes = np.frombuffer(f" {found} ".encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
        letters = _windows(codes, self.characters, salt=1)
        words = _windows(np.array([_code(piece) for piece in pieces], dtype=np.uint64), self.words, salt=2)
        form = np.concatenate([_windows(_skeleton(pieces), self.skeleton, salt=3), _form(pieces)])
        shift = np.uint64(64 - self.bits)
        return Hashed(
            (np.concatenate((letters, words, form)) >> shift).astype(np.int64),
            np.concatenate(
                (
                    _even(len(letters), min(1.0, self.short / max(1, len(pieces)))),
                    _even(len(words), self.word_weight),
                    _even(len(form), 1.0),
                )
            ),
            len(letters),
        )


def _even(count: int, scale: float) -> Floats:
    return np.full(count, scale / max(1, count) ** 0.5, dtype=np.float32)


def fold(text: str, head: int, tail: int) -> str:
    """What is read of a text: NFKC, case-folded, runs of space made one, cut in the middle. Bounded work."""
    most = head + tail
    # What is cut away must not be normalised first: that takes quadratic time on combining marks.
    cut = text if len(text) <= 4 * most else f"{text[: 2 * most]} {text[-2 * most :]}"
    folded = " ".join(unicodedata.normalize("NFKC", cut).casefold().replace("’", "'").split())
    return folded if len(folded) <= most else f"{folded[:head]} {folded[-tail:]}"


def _skeleton(pieces: list[str]) -> Codes:
    return np.array([_sign(piece) for piece in pieces], dtype=np.uint64)


def _sign(piece: str) -> int:
    known = _FUNCTION_CODES.get(piece)
    if known is not None:
        return known
    if not (piece[0].isalnum() or piece[0] == "_"):
        return _code(f"={piece}")
    if any(map(str.isdigit, piece)):
        return _SHAPE_CODES["9"]
    if len(piece) > 4 and piece.endswith("est"):
        return _SHAPE_CODES["xest"]
    return _SHAPE_CODES["xer" if len(piece) > 4 and piece.endswith("er") else "x"]


def _form(pieces: list[str]) -> Codes:
    count = next((bound for bound in _COUNTS if len(pieces) <= bound), 99)
    opener = _sign(pieces[0]) if pieces else 0
    return _windows(np.array([_code(f"#{count}"), opener], dtype=np.uint64), (1, 2), salt=4)


def _windows(codes: Codes, lengths: tuple[int, int], *, salt: int) -> Codes:
    """A 64-bit hash of every window of the given lengths."""
    found: list[Codes] = []
    for length in range(lengths[0], min(lengths[1], len(codes)) + 1):
        many = len(codes) - length + 1
        mixed = np.full(many, 0xCBF29CE484222325 + 31 * salt + length, dtype=np.uint64)
        for at in range(length):
            mixed = (mixed ^ codes[at : at + many]) * _PRIME
            mixed ^= mixed >> _HALF
        found.append(mixed * _MIX)
    return np.concatenate(found) if found else np.zeros(0, dtype=np.uint64)
