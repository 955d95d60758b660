"""What a guard says when it objects."""

from __future__ import annotations

from typing import NamedTuple

from serving.answer.types import Reason


class Rejection(NamedTuple):
    """Why the evidence cannot entail a claim, and the words that decided: the claim's, then the evidence's if any."""

    reason: Reason
    words: tuple[str, ...]
