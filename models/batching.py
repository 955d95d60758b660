"""Groups rows of similar length, so that little of a batch is padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Batches of indices into ``lengths``, longest first, each index once.

    The padded size of a batch, its rows times its longest row, is at most ``budget`` tokens; a row longer than that
    goes alone.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
