"""Which segments of vectors are to be merged, so that they stay few and hold little that is gone. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from serving.retrieval.manifest import Segment

FAN = 8
"""So many segments of about one size make one of the next: each row is rewritten once a size."""


def next_merge(segments: Sequence[Segment], seal_rows: int) -> list[Segment]:
    """The segments to make one of, next; none when all is well. Doing what it says comes to an end.

    In this order: one of which a quarter is gone; all unsealed ones when together they fill a sealed one; ``FAN``
    unsealed ones of a size.
    """
    for segment in segments:
        if 4 * segment.dead > segment.rows:
            return [segment]
    unsealed = [segment for segment in segments if not segment.sealed]
    if sum(segment.live for segment in unsealed) >= seal_rows:
        return unsealed
    sizes: dict[int, list[Segment]] = {}
    for segment in unsealed:
        sizes.setdefault(_size(segment.live), []).append(segment)
    return next((same for _, same in sorted(sizes.items()) if len(same) >= FAN), [])


def _size(rows: int) -> int:
    """How often ``rows`` can be divided by :data:`FAN`."""
    size = 0
    while rows >= FAN:
        rows //= FAN
        size += 1
    return size
