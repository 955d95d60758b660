"""The Verifier deployment: a pair classifier, or the overlap reference where none is configured."""

from __future__ import annotations

from ray import serve

from models.catalog import Catalog
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair, Verifier
from serving.answer.types import Verdict
from serving.deployments.base import WARM_UP_S, ModelDeployment, deadline_in, encoder_options
from serving.settings import Settings


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
        self._count()
        return list(await self._verifier.verify(pairs, deadline=deadline_in(timeout_s)))

    async def name(self) -> str:
        return self._name
