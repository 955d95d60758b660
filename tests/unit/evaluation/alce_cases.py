"""Outputs to score in ALCE's way: one for each quirk of the original, and 40 that a fixed seed draws."""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import dataclass

from serving.evaluation.alce import Document, Item

DOCS = (
    Document("Tides", "The moon raises two bulges in the sea."),
    Document("Moon", "It circles the earth in 27 days."),
    Document("Sea", "Salt water covers most of the globe."),
)
ANSWERS = (("the moon", "Luna"), ("27 days",))
SEED = 20_240_229

QUIRKS = {
    "plain": "The moon raises tides [1]. It takes 27 days [2].",
    "several": "The moon raises tides [1][2]. It takes 27 days [2][3].",
    "a list cites its first": "The moon raises tides [1, 2]. It takes [2,3] 27 days.",
    "a range cites its first": "The moon raises tides [1-3]. It is so [2–3].",
    "zero cites the last": "The sea is salt [0]. The moon [0][1].",
    "out of range voids the sentence": "The moon raises tides [1][9]. It takes 27 days [2].",
    "out of range alone": "The moon [4].",
    "code is a citation": "Then a[0]=b[1] holds. And c[12] too.",
    "full width": "The moon【1】 and Luna［2］. It [２] takes 27 days.",
    "caret": "The moon [^1] raises tides. It takes [^2][1].",
    "repeated": "The moon raises tides [1][1]. It takes 27 days [2] [2][2].",
    "stray brackets": "A ]b and c] d | e |f ]| g [1]. x ] | y.",
    "after the full stop": "The moon raises tides. [1] It takes 27 days. [2]",
    "a year": "In [1969] men walked there [1]. In [2] days.",
    "first line only": "The moon raises tides [1].\nIt takes 27 days [2].",
    "led by a line break": "\n\n  The moon raises tides [1].  \n",
    "end of turn": "The moon raises tides [1].<|im_end|> It takes<|im_end|>[2].",
    "empty": "",
    "blank": " \n ",
    "a decline": "The documents do not say.",
    "more than three": "The moon [1][2][3][1][2]. It [3][2][1][0].",
    "no sentence end": "the moon raises tides [1][2]",
    "spaces before marks": "The moon  [1]  [2] raises tides .",
    "glued": "The moon[1]raises[2]tides[3].",
    "nested": "The moon [[1]] and [[2] [3]].",
    "huge number": "The moon [123456789012345678901].",
    "answers inside words": "Honeymoon and lunatics; 127 days.",
    "articles": "A an the THE, a.",
    "not latin": "Луна поднимает приливы [1]。潮汐[2]。",
    "a bar": "one | two |three [1] | four.",
}


@dataclass(frozen=True, slots=True)
class Case:
    """Items scored together."""

    name: str
    items: tuple[Item, ...]
    at_most: int | None = 3
    qampari: bool = False


def split(text: str) -> list[str]:
    """Cuts where punkt does on plain sentences: after a terminator and a space."""
    return [piece for piece in re.split(r"(?<=[.!?])\s+", text) if piece]


def coin(premise: str, claim: str) -> int:
    """Entails about two pairs in three, always the same ones."""
    return int(zlib.crc32(f"{premise}|{claim}".encode()) % 3 != 0)


def cases() -> list[Case]:
    alone = [Case(f"quirk: {name}", (_item(output),)) for name, output in QUIRKS.items()]
    every = tuple(_item(output) for output in QUIRKS.values())
    together = [Case(f"all quirks, at most {at_most}", every, at_most=at_most) for at_most in (None, 1, 2, 3)]
    others = [
        Case("no readings", tuple(Item(item.question, item.output, item.docs) for item in every)),
        Case("an empty list of readings", (_item("The moon [1]."), Item("Why?", "Luna [2].", DOCS, ()))),
        Case("cut at commas", every, qampari=True),
        Case("an answer that is an article", (Item("Why?", "Nothing [1].", DOCS, (("The",), ("no",))),)),
    ]
    return [*alone, *together, *others, *_drawn(random.Random(SEED))]


def _item(output: str) -> Item:
    return Item("What raises tides?", output, DOCS, ANSWERS)


_WORDS = ("The moon", "Luna", "tides", "it", "27 days", "the", "sea", "and", "was", "É", "in", "Earth's")
_MARKS = ("[1]", " [1]", "[2]", " [2]", " [3]", "[1][2]", " [2, 3]", "[0]", " [4]", "[^1]", " [1-2]", "]", " |", "[12]")
_ENDS = (". ", "! ", ", ", ".", "? ", "\n", "; ", "<|im_end|>", " ")


def _drawn(source: random.Random, count: int = 40) -> list[Case]:
    return [
        Case(
            f"drawn {number}",
            tuple(_item(_output(source)) for _ in range(source.randint(1, 6))),
            at_most=source.choice((None, 1, 2, 3)),
            qampari=source.random() < 0.2,
        )
        for number in range(count)
    ]


def _output(source: random.Random) -> str:
    pieces: list[str] = []
    for _ in range(source.randint(0, 8)):
        pieces.append(" ".join(source.choices(_WORDS, k=source.randint(1, 4))))
        pieces += source.choices(_MARKS, k=source.choice((0, 1, 1, 2, 3)))
        pieces.append(source.choices(_ENDS, weights=(8, 1, 2, 2, 1, 0.3, 1, 0.5, 1))[0])
    return "".join(pieces)
