"""What is made of two ways of writing one reply, timed in turns: when a sentence was whole, ratios of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from serving.answer.statements import Statement
from serving.answer.streaming import Parser


@dataclass(frozen=True, slots=True)
class Written:
    """One reply as it came: ``pieces`` are seconds since its prompt was ready and the text that came then."""

    pieces: tuple[tuple[float, str], ...]
    whole_s: float
    tokens: int

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)


def whole_at(pieces: Sequence[tuple[float, str]], sentence: str, *, passages: int) -> float | None:
    """When the last character of a sentence had come, in seconds; None when the reply does not hold it.

    ``sentence`` is a claim's text, without its markers: where one follows the full stop it is not waited for, nor is
    whatever tells the parser that the sentence does not go on.
    """
    text = "".join(piece for _, piece in pieces)
    lengths = range(1, len(text) + 1)
    holding = (n for n in lengths if any(found.claim.text == sentence for found in parsed(text[:n], passages)))
    length = next(holding, None)
    ends = accumulate(len(piece) for _, piece in pieces)
    return None if length is None else next(at for (at, _), end in zip(pieces, ends, strict=True) if end >= length)


def parsed(text: str, passages: int) -> list[Statement]:
    """The statements of a reply that ends here."""
    parser = Parser(passages)
    return [*parser.feed(text), *parser.finish()]


def middle(pairs: Sequence[tuple[float, float]]) -> float:
    """The median of the pairs' ratios, the first over the second. Raises ValueError without a pair."""
    if not pairs:
        raise ValueError("there is no pair to take a ratio of")
    return median(first / second for first, second in pairs)


def spread(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """The least and the greatest ratio."""
    ratios = [first / second for first, second in pairs]
    return [round(min(ratios), 3), round(max(ratios), 3)]


def without(wall_s: float, cpu_s: float) -> float:
    """What is left of a time once the verifier's compute is taken off it: never less than a tenth of it."""
    return max(wall_s - cpu_s, wall_s / 10)


def at_most(name: str, pairs: Sequence[tuple[float, float]], target: float, **beside: object) -> dict[str, object]:
    """A bar: the median ratio is at most ``target``. ``beside`` is reported and not judged."""
    value = middle(pairs)
    found = {"name": name, "value": round(value, 3), "target": target, "ok": value <= target}
    return {**found, "n": len(pairs), "range": spread(pairs), **beside}


def at_least(name: str, pairs: Sequence[tuple[float, float]], target: float, **beside: object) -> dict[str, object]:
    """A bar: the median ratio is at least ``target``."""
    value = middle(pairs)
    return {**at_most(name, pairs, target, **beside), "ok": value >= target}
