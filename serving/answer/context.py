"""From ranked passages to the context the model reads: freshen, consolidate, budget, order. Pure functions.

Every function takes passages best first and leaves its arguments alone. No passage is ever cut.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from serving.answer.reading import read
from serving.answer.seams import TokenCounter
from serving.answer.types import Passage

_SECONDS_A_DAY = 86_400.0
_PERIOD = r"(?:year|month|week|weekend|season|morning|quarter)"
_TIME_SENSITIVE = re.compile(
    r" (?:latest|newest|recent|recently|today|today's|tonight|yesterday|tomorrow|now|nowadays|currently|upcoming"
    r"|breaking|so far|up to date|up-to-date|at the moment|these days"
    rf"|this {_PERIOD}|last (?:{_PERIOD}|night)|next {_PERIOD}"
    # "electric current" and "alternating current" are no dates: only "current" before a word, and not after those.
    r"|(?<!electric )(?<!electrical )(?<!alternating )(?<!direct )(?<!ocean )"
    r"current (?!in |of |through |flows? )[^ ?.,]+) "
)
_YEAR = re.compile(r"[12]\d{3}")


def time_sensitive(question: str, *, now: datetime) -> bool:
    """Whether old passages are likely wrong: ``latest``, ``today``, ``this year``, ``now``'s year or one beside it."""
    reading = read(question)
    if _TIME_SENSITIVE.search(reading.line):
        return True
    recent = {str(_aware(now).year + years) for years in (-1, 0, 1)}
    return any(word in recent for word in reading.words if _YEAR.fullmatch(word))


def rank(
    passages: Sequence[Passage], scores: Sequence[float], *, retrieval_weight: float, floor: float
) -> list[Passage]:
    """Passages by the reranker's ``scores``, best first, equals in the order they were retrieved.

    Those that the reranker scores below ``floor`` are left out. For the others
    ``score' = (1 - retrieval_weight) * score + retrieval_weight * retrieved``, where ``retrieved`` is the passage's own
    score over the best one's. All in [0, 1].
    """
    best = max((passage.score for passage in passages), default=0.0)

    def blend(passage: Passage, score: float) -> Passage:
        retrieved = passage.score / best if best > 0 else 0.0
        return passage.scored((1.0 - retrieval_weight) * score + retrieval_weight * retrieved)

    kept = [blend(passage, score) for passage, score in zip(passages, scores, strict=True) if score >= floor]
    return sorted(kept, key=lambda passage: -passage.score)


def freshen(passages: Sequence[Passage], *, now: datetime, half_life_days: float, weight: float) -> list[Passage]:
    """Blends recency into the scores of dated passages and sorts by score, equals in the order they came.

    ``score' = (1 - weight) * score + weight * score * 0.5 ** (age / half_life_days)``. Scores are in [0, 1]. Undated
    passages keep theirs: no date is no evidence of age. A date to come is age 0; a date without a zone is UTC.

    Raises ValueError for a half-life that is not positive or a weight outside [0, 1].
    """
    if not half_life_days > 0:
        raise ValueError(f"half_life_days must be positive, not {half_life_days}")
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must be in [0, 1], not {weight}")
    today = _aware(now)

    def fresh(passage: Passage) -> Passage:
        if passage.published_at is None:
            return passage
        age_days = max(0.0, (today - _aware(passage.published_at)).total_seconds() / _SECONDS_A_DAY)
        decay = 0.5 ** (age_days / half_life_days)
        # The same blend, written so that rounding cannot make a larger weight give a larger score.
        return passage.scored(passage.score * (1.0 - weight * (1.0 - decay)))

    return sorted(map(fresh, passages), key=lambda passage: -passage.score)


def consolidate(passages: Sequence[Passage], *, per_source: int) -> list[Passage]:
    """Keeps the first ``per_source`` passages of each source, in order, and of equal texts only the first.

    Texts are equal when they differ in white space alone. Passages without a source are each a voice of their own.

    Raises ValueError when ``per_source`` is below 1.
    """
    if per_source < 1:
        raise ValueError(f"per_source must be at least 1, not {per_source}")
    kept: list[Passage] = []
    seen: set[str] = set()
    voices: Counter[str] = Counter()
    for passage in passages:
        text = " ".join(passage.text.split())
        if text in seen or (passage.source and voices[passage.source] >= per_source):
            continue
        seen.add(text)
        voices[passage.source] += 1
        kept.append(passage)
    return kept


def budget(
    passages: Sequence[Passage],
    *,
    counter: TokenCounter,
    render: Callable[[int, Passage], str],
    tokens: int,
    limit: int,
) -> list[Passage]:
    """The passages that fit into ``tokens`` tokens, at most ``limit``, filled in rank order.

    Each is counted as the prompt renders it, ``render(number, passage)``, where ``number`` is the one it will have when
    it is kept: its place in the result, from 1. ``tokens`` is for passages alone: what stands between them and around
    them is the caller's to take off first. One that does not fit is left out, and smaller ones after it may still come
    in.
    """
    kept: list[Passage] = []
    left = tokens
    for passage in passages:
        if len(kept) >= limit:
            break
        cost = counter.count(render(len(kept) + 1, passage))
        if cost <= left:
            kept.append(passage)
            left -= cost
    return kept


def order(count: int) -> list[int]:
    """Where ``count`` ranked passages stand in the prompt, as 0-based ranks: best first, second best last, weakest in
    the middle, where models read least well. Four give ``[0, 2, 3, 1]``. A passage keeps its number wherever it stands.
    """
    return [*range(0, count, 2), *reversed(range(1, count, 2))]


def numbered(passages: Sequence[Passage]) -> list[tuple[int, Passage]]:
    """Ranked passages with their numbers, from 1, in the order in which they stand in the prompt."""
    return [(rank + 1, passages[rank]) for rank in order(len(passages))]


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
