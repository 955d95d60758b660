"""A reply as it was written and judged: what an answer, a decline or a refusal is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from serving.answer import prompt, verification
from serving.answer.statements import Reply
from serving.answer.types import Judged, Reason

CUT_SHORT = ("length", "deadline")


@dataclass(slots=True)
class Draft:
    """A reply as it was written, with what it cost and what was found about its claims. Times in seconds.

    ``declined``: a structured reply says so; ``broken``: it is no whole object. ``first_s`` is the time to the first
    token, a part of ``synthesize_s``; ``verify_s`` is what verification took beyond the last token. ``released`` are
    the claims that were shown before the reply was whole. ``version`` is what wrote it, where the writer says so.
    """

    text: str = ""
    finish_reason: str = "stop"
    declined: bool = False
    broken: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    verified_pairs: int = 0
    version: str = ""
    first_s: float = 0.0
    synthesize_s: float = 0.0
    verify_s: float = 0.0
    reply: Reply = field(default_factory=lambda: Reply("", ()))
    decomposed: verification.Decomposed = field(default_factory=lambda: verification.Decomposed((), ()))
    judged: tuple[Judged, ...] = ()
    released: list[Judged] = field(default_factory=list)

    @property
    def cut_short(self) -> bool:
        """Whether the reply ended before the model was done."""
        return self.broken or self.finish_reason in CUT_SHORT

    @property
    def verifiers(self) -> tuple[str, ...]:
        """What judged its claims, where the verifier says so: more than one when another took over in between."""
        said = (verdict.version for judged in self.judged for _, verdict in judged.verdicts)
        return tuple(dict.fromkeys(filter(None, said)))

    @property
    def late(self) -> bool:
        """Whether the deadline cut off the reply, or left a claim without a verdict."""
        return self.finish_reason == "deadline" or any(judged.reason is Reason.DEADLINE for judged in self.judged)

    @property
    def declines(self) -> bool:
        """Whether the model said, in the agreed form, that the passages do not answer."""
        return self.declined or self.text.strip().strip("\"'*") == prompt.DECLINE_LINE

    @property
    def cites(self) -> bool:
        return any(statement.claim.chunks or statement.claim.fabricated for statement in self.reply.statements)
