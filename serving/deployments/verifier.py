"""The Verifier deployment: a pair classifier, or the overlap reference where none is configured.

The relevance judge is served here too: it reads short pairs, and where it is a head of the verifier's encoder it takes
no memory of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray import serve

from models.catalog import Catalog
from serving.answer.errors import UnavailableError
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair, Verifier
from serving.answer.types import Verdict
from serving.deployments.base import WARM_UP_S, ModelDeployment, deadline_in, encoder_options
from serving.settings import RelevanceSettings, Settings, VerifierSettings

if TYPE_CHECKING:
    from models.encoder import PairEncoder


@serve.deployment(name="Verifier")
class VerifierDeployment(ModelDeployment):
    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        chosen, judge = settings.models.verifier, settings.models.relevance
        encoder: PairEncoder | None = None
        self._verifier: Verifier
        if chosen.kind == "pair":
            # The overlap reference needs no torch: it is loaded only for a model.
            from models.verifier import PairVerifier

            encoder = _encoder(settings, chosen, "verifier")
            self._verifier, self._name = PairVerifier(encoder, threshold=chosen.threshold), encoder.name
        else:
            self._verifier, self._name = OverlapVerifier(chosen.threshold), f"overlap@{chosen.threshold:g}"
        self._relevance: PairEncoder | None = None
        if judge.kind == "pair":
            shared = encoder.beside("relevance") if encoder is not None and judge.model == chosen.model else None
            self._relevance = shared or _encoder(settings, judge, "relevance")
            await self.relevance([("A text.", "A question?")], timeout_s=WARM_UP_S)
        await self._verifier.verify([Pair("A text.", "A claim.")], deadline=deadline_in(WARM_UP_S))

    async def verify(self, pairs: list[Pair], *, timeout_s: float) -> list[Verdict]:
        self._count()
        return list(await self._verifier.verify(pairs, deadline=deadline_in(timeout_s)))

    async def relevance(self, pairs: list[tuple[str, str]], *, timeout_s: float) -> list[float]:
        """How well each statement answers the question beside it, in [0, 1]."""
        if self._relevance is None:
            raise UnavailableError("models.relevance.kind is rare_words: no relevance judge is loaded here")
        return await self._relevance.score(pairs, deadline=deadline_in(timeout_s))

    async def name(self) -> str:
        return self._name


def _encoder(settings: Settings, chosen: VerifierSettings | RelevanceSettings, head: str) -> PairEncoder:
    from models.head_encoder import open_pairs

    catalog = Catalog(settings.home)
    folder = catalog.locate(str(chosen.model))
    return open_pairs(
        folder,
        order="document_first" if head == "verifier" else "settled_first",
        head=head,
        base=catalog.base_of(folder),
        **encoder_options(chosen, settings.deployments.verifier),
    )
