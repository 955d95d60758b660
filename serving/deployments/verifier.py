"""The Verifier deployment: a pair classifier, or the overlap reference where none is configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ray import serve

from models.catalog import Catalog
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair, Verifier
from serving.answer.types import Deadline, PairScore, Phases, Scored, Verdict
from serving.deployments.base import WARM_UP_S, ModelDeployment, deadline_in, encoder_options
from serving.settings import Settings


@runtime_checkable
class ReadsPairs(Protocol):
    """A verifier that can say what it read of each premise."""

    async def read(self, pairs: Sequence[Pair], *, deadline: Deadline) -> tuple[list[Verdict], Scored]: ...


@serve.deployment(name="Verifier")
class VerifierDeployment(ModelDeployment):
    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        chosen = settings.models.verifier
        self._verifier: Verifier
        if chosen.kind == "pair":
            # The overlap reference needs no torch: it is loaded only for a model.
            from models.encoder import PairEncoder
            from models.verifier import PairVerifier

            folder = Catalog(settings.home).locate(str(chosen.model))
            options = encoder_options(chosen, settings.deployments.verifier)
            encoder = PairEncoder(folder, order="document_first", long_document=chosen.long_document, **options)
            self._verifier, self._name = PairVerifier(encoder, threshold=chosen.threshold), encoder.name
            self._health = encoder.health
            await encoder.warm_up()
        else:
            self._verifier, self._name = OverlapVerifier(chosen.threshold), f"overlap@{chosen.threshold:g}"
        await self._verifier.verify([Pair("A text.", "A claim.")], deadline=deadline_in(WARM_UP_S))

    async def verify(self, pairs: list[Pair], *, timeout_s: float) -> list[Verdict]:
        return (await self.read(pairs, timeout_s=timeout_s))[0]

    async def read(self, pairs: list[Pair], *, timeout_s: float) -> tuple[list[Verdict], Scored]:
        """The verdicts, with what was read of each premise and where the time went."""
        self._count()
        deadline = deadline_in(timeout_s)
        if not isinstance(self._verifier, ReadsPairs):
            verdicts = list(await self._verifier.verify(pairs, deadline=deadline))
            return verdicts, Scored(tuple(PairScore(verdict.score) for verdict in verdicts), Phases())
        verdicts, scored = await self._verifier.read(pairs, deadline=deadline)
        self._measured(scored.phases)
        return verdicts, scored

    async def name(self) -> str:
        return self._name
