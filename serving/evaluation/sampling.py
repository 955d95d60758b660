"""Choosing some rows of a suite: the same number of each label, by a seed, in the suite's order."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

R = TypeVar("R")


def balanced(rows: Sequence[R], label: Callable[[R], Hashable], limit: int | None, seed: int) -> list[R]:
    """At most ``limit`` rows, as evenly over the labels as they allow; all rows when there is no limit.

    A larger limit with the same seed keeps the rows that a smaller one chose, as long as no label runs out.
    """
    if limit is None or limit >= len(rows):
        return list(rows)
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[label(row)].append(place)
    source = random.Random(seed)  # noqa: S311 (a sample, not a secret)
    queues = [places[name] for name in sorted(places, key=repr)]
    for queue in queues:
        source.shuffle(queue)
    chosen: list[int] = []
    for turn in range(max(map(len, queues))):
        chosen += [queue[turn] for queue in queues if turn < len(queue)]
    return [rows[place] for place in sorted(chosen[:limit])]
