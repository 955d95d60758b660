"""What word counting says of a pair, beside what a model does."""

from __future__ import annotations

from serving.answer.text import content_words, numbers

COUNT = 3


def features(document: str, settled: str) -> tuple[float, ...]:
    """The share of the settled text's content words that the document holds, whether it holds all of them, and the
    share of its numbers that the document lacks. Each in [0, 1].
    """
    asked, held = set(content_words(settled)), set(content_words(document))
    share = len(asked & held) / len(asked) if asked else 0.0
    counted = numbers(settled)
    lacking = len(counted - numbers(document)) / len(counted) if counted else 0.0
    return share, float(share == 1.0), lacking
