"""The model-backed verifier: does a premise entail a claim?"""

from __future__ import annotations

from collections.abc import Sequence

from models.encoder import PairEncoder
from serving.answer.seams import Pair
from serving.answer.types import Deadline, Reason, Scored, Verdict


class PairVerifier:
    """The seam :class:`~serving.answer.seams.Verifier` over a pair encoder that reads the document first.

    A claim is entailed when its best piece of the premise scores at least ``threshold``, or more than it where the
    encoder's family has it so.
    """

    def __init__(self, encoder: PairEncoder, *, threshold: float = 0.5) -> None:
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"threshold is {threshold}, and must lie between 0 and 1: 0.5 is the usual one.")
        self._encoder = encoder
        self._threshold = threshold
        self.name = encoder.name

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        return (await self.read(pairs, deadline=deadline))[0]

    async def read(self, pairs: Sequence[Pair], *, deadline: Deadline) -> tuple[list[Verdict], Scored]:
        """:meth:`verify` with what was read of each premise, and the time it took."""
        scored = await self._encoder.read([(pair.premise, pair.claim) for pair in pairs], deadline=deadline)
        verdicts = [
            Verdict(pair.score, self._reason(pair.score), contradiction=pair.contradiction) for pair in scored.pairs
        ]
        return verdicts, scored

    async def warm_up(self) -> None:
        await self._encoder.warm_up()

    def close(self) -> None:
        self._encoder.close()

    def _reason(self, score: float) -> Reason:
        passed = score > self._threshold if self._encoder.exclusive else score >= self._threshold
        return Reason.ENTAILED if passed else Reason.NOT_ENTAILED
