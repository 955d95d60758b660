"""Reference answers found as strings: exact match and str-EM, as ALCE computes them and as we do.

ALCE looks for a normalised answer anywhere in the normalised text, so "he" is found in "the lot" and an answer that
normalises to nothing ("The") is found in every text. Ours (:func:`answer_share`) matches whole words and ignores such
answers.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import numpy as np

from serving.evaluation.estimates import NotApplicable, Score

_ARTICLES = re.compile(r"\b(?:an?|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, English articles and repeated space. SQuAD's and ALCE's own order."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, reference: str) -> bool:
    return normalise_answer(answer) == normalise_answer(reference)


def legacy_presence(short_answers: Sequence[str], text: str) -> bool:
    """ALCE's ``exact_presence``: any normalised answer is a substring of the normalised text."""
    context = normalise_answer(text)
    return any(normalise_answer(answer) in context for answer in short_answers)


def legacy_str_em(outputs: Sequence[str], answers: Sequence[Sequence[Sequence[str]] | None]) -> tuple[float, float]:
    """ALCE's STR-EM and STR-HIT, in percent. ``answers[i][j]`` are the short answers of reading j of item i.

    As the original: when the first item has no readings all of them count as having none, (0, 0); an item with an empty
    list of readings makes both results NaN.
    """
    if answers[0] is None:
        return 0.0, 0.0
    shares = [_legacy_share(output, readings) for output, readings in zip(outputs, answers, strict=True)]
    return float(100 * np.mean(shares)), float(100 * np.mean([int(share == 1) for share in shares]))


def _legacy_share(output: str, readings: Sequence[Sequence[str]] | None) -> float:
    if readings is None:
        raise ValueError("an item without qa_pairs stands among items that have them; the original fails here too")
    if not readings:
        return float("nan")
    return float(np.mean([legacy_presence(reading, output) for reading in readings]))


def answer_share(text: str, readings: Sequence[Sequence[str]]) -> Score:
    """The share of readings of which some short answer stands in ``text`` as whole words."""
    words = f" {normalise_answer(text)} "
    askable = [found for reading in readings if (found := [a for a in map(normalise_answer, reading) if a])]
    if not askable:
        return NotApplicable.NO_REFERENCE
    return sum(any(f" {answer} " in words for answer in reading) for reading in askable) / len(askable)
