"""Which of the rows that wait go into the next forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def choose(lengths: Sequence[int], budget: int, launch: int) -> list[int]:
    """The rows of the next pass, by index into ``lengths``, which are in order of arrival; shortest first.

    The oldest row, index 0, is always among them, so that none starves. The others are its neighbours by length: of all
    runs of the sorted rows that hold the oldest and whose padded size (rows times the longest) is at most ``budget``
    tokens, one that does the most real work for its cost. ``launch`` is what a pass costs beside its tokens, in tokens:
    the greater it is, the more padding is put up with to fill a pass. A row longer than the budget goes alone.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    ranked = [lengths[index] for index in order]
    oldest = order.index(0)
    sums = [0, *accumulate(ranked)]
    best, first, last = 0.0, oldest, oldest
    for end in range(oldest, len(ranked)):
        begin = max(0, end + 1 - budget // ranked[end])
        if begin > oldest:
            break
        worth = (sums[end + 1] - sums[begin]) / (ranked[end] * (end + 1 - begin) + launch)
        if worth > best:
            best, first, last = worth, begin, end
    # Short rows that would be mostly padding beside the longest are left for a pass of their own.
    while first < oldest:
        cost = ranked[last] * (last + 1 - first) + launch
        if ranked[first] * cost >= (sums[last + 1] - sums[first]) * ranked[last]:
            break
        first += 1
    return order[first : last + 1]
