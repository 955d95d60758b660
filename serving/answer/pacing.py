"""Asking for less when time is short: fewer passages and a shorter reply, never less verification.

A question has one budget of seconds, its deadline. What its prompt and its reply will take is estimated from those
before it; what does not fit is not asked for. Each stage before composing gets the time that leaves a least answer
possible: when that is spent, the question fails there and then, and holds no model that others wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

from serving.answer.types import Deadline

LEAST_CONTEXT = 384
"""Tokens of passages below which there is nothing to answer from: about two passages."""
LEAST_REPLY = 48
"""Tokens of a reply below which no sentence fits, with its marker."""
SLACK = 0.85
"""The share of the time left that is planned with: estimates are averages, and half of all replies take longer."""
_MEMORY = 0.8
"""How much of an average stays when a question adds to it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a question may ask for, in tokens of passages and of reply. ``reduced`` when that is less than by policy."""

    context_tokens: int
    reply_tokens: int
    reduced: bool = False


class Pace:
    """How long prompts, replies and their verification take here: averages over the questions before. In seconds.

    Until a question has been through, nothing is known, and everything is asked for.
    """

    def __init__(self) -> None:
        self._prompt_token = _Average()
        self._reply_token = _Average()
        self._verifying = _Average()

    def observe(
        self, *, prompt_tokens: int, first_s: float, reply_tokens: int, writing_s: float, verifying_s: float
    ) -> None:
        """Adds one question: its first token came after ``first_s``, the others took ``writing_s`` together, and its
        verification went on for ``verifying_s`` after the last.
        """
        if prompt_tokens > 0 and first_s > 0:
            self._prompt_token.add(first_s / prompt_tokens)
        if reply_tokens > 1 and writing_s > 0:
            self._reply_token.add(writing_s / (reply_tokens - 1))
        self._verifying.add(max(0.0, verifying_s))

    def least_s(self, *, prompt_tokens: int) -> float:
        """What the least answer takes: instructions of ``prompt_tokens``, two passages, one sentence, its proof."""
        return self._takes(prompt_tokens + LEAST_CONTEXT, LEAST_REPLY) / SLACK

    def plan(self, left_s: float, *, prompt_tokens: int, context_tokens: int, reply_tokens: int) -> Plan:
        """What fits into ``left_s`` seconds: at most what is asked for, at least the least answer.

        ``prompt_tokens`` are the instructions', which are always there. Passages and reply shrink by the same share.
        """
        least_context, least_reply = min(LEAST_CONTEXT, context_tokens), min(LEAST_REPLY, reply_tokens)
        whole = self._takes(prompt_tokens + context_tokens, reply_tokens)
        least = self._takes(prompt_tokens + least_context, least_reply)
        usable = left_s * SLACK
        if whole <= usable or whole <= least:
            return Plan(context_tokens, reply_tokens)
        share = max(0.0, min(1.0, (usable - least) / (whole - least)))
        return Plan(
            context_tokens=least_context + int(share * (context_tokens - least_context)),
            reply_tokens=least_reply + int(share * (reply_tokens - least_reply)),
            reduced=True,
        )

    def _takes(self, prompt_tokens: int, reply_tokens: int) -> float:
        written = self._prompt_token.value * prompt_tokens + self._reply_token.value * reply_tokens
        return written + self._verifying.value


class _Average:
    """An exponentially weighted average, 0 before the first value."""

    def __init__(self) -> None:
        self.value = 0.0
        self._known = False

    def add(self, value: float) -> None:
        self.value = _MEMORY * self.value + (1.0 - _MEMORY) * value if self._known else value
        self._known = True


def leaving(deadline: Deadline, reserved_s: float) -> Deadline:
    """An earlier deadline, which leaves ``reserved_s`` seconds of the one given."""
    return Deadline(deadline.at - reserved_s, deadline.clock)
