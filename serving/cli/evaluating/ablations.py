"""Switches a part of the product off for one run, to see what it is worth.

There is no setting for these: nothing that serves may run without them. So the functions that do the work are replaced,
here, for as long as the run lasts; a name that is not there any more fails the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any
from unittest.mock import patch


class Part(StrEnum):
    """``ordering``: passages stand in rank order. ``guards``: claims go to the verifier unguarded."""

    ORDERING = "ordering"
    GUARDS = "guards"


def _in_rank_order(count: int) -> list[int]:
    return list(range(count))


def _never(_claim: str, _evidence: Any) -> None:
    return None


_REPLACED = {
    Part.ORDERING: (("serving.answer.context.order",), _in_rank_order),
    Part.GUARDS: (("serving.answer.proving.reject", "serving.cli.evaluating.doing.reject"), _never),
}


@contextmanager
def without(parts: Sequence[Part]) -> Iterator[None]:
    """The product without these parts, in this process."""
    replaced = [_REPLACED[part] for part in parts]
    patches = [patch(target, instead) for targets, instead in replaced for target in targets]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
