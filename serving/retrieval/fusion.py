"""Reciprocal rank fusion: one ranking out of many, from ranks alone, so that scores need no common scale.

Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
SIGIR 2009.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

K = 5
"""The larger, the less the first ranks stand out. The paper has 60, for many rankings of a thousand. With our two, 5
does best of 5, 10, 20 and 60 on 700 training questions of SQuAD 2.0: nDCG@10 0.902 and recall@5 0.967. It is 0.892 and
0.956 with 60, 0.898 and 0.946 by BM25 alone, 0.815 and 0.890 by vectors alone."""


def reciprocal_rank_fusion(rankings: Sequence[Sequence[Key]], k: int = K) -> list[tuple[Key, float]]:
    """Fuse ``rankings``, each best first, into one list of ``(key, score)``, best first.

    A key scores the sum of ``1 / (k + rank)`` over the rankings that hold it, ranks from 1; a repeat inside one ranking
    counts where it stands first. Equal scores go by the best rank, then by the order of the rankings, so the same input
    always gives the same output. Raises ``ValueError`` for a negative ``k``.
    """
    if k < 0:
        raise ValueError(f"k must not be negative, got {k}")
    ranks: dict[Key, list[int]] = {}
    for ranking in rankings:
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            ranks.setdefault(key, []).append(rank)
    # fsum is exact, so that the score does not depend on the order in which the rankings are given.
    fused = [(key, math.fsum(1.0 / (k + rank) for rank in found)) for key, found in ranks.items()]
    # The sort is stable and ``ranks`` is in order of first appearance, which settles what the key leaves equal.
    fused.sort(key=lambda entry: (-entry[1], min(ranks[entry[0]])))
    return fused
