"""The Verifier deployment: a pair classifier, or the overlap reference where none is configured.

The relevance judge is served here too: it reads short pairs, and where it is a head of the verifier's encoder it takes
no memory of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from ray import serve

from models.catalog import Catalog
from serving.answer.errors import UnavailableError
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair, Verifier
from serving.answer.types import Deadline, PairScore, Phases, Scored, Verdict
from serving.deployments.base import WARM_UP_S, EncoderDeployment, deadline_in, encoder_name, encoder_options
from serving.settings import RelevanceSettings, Settings, VerifierSettings

if TYPE_CHECKING:
    from models.encoder import PairEncoder


@runtime_checkable
class ReadsPairs(Protocol):
    """A verifier that can say what it read of each premise."""

    async def read(self, pairs: Sequence[Pair], *, deadline: Deadline) -> tuple[list[Verdict], Scored]: ...

    async def warm_up(self) -> None: ...


class Judges(NamedTuple):
    """A verifier, the name that answers carry for it, the relevance judge beside it, and all encoders of both."""

    verifier: Verifier
    name: str
    relevance: PairEncoder | None
    encoders: tuple[PairEncoder, ...]

    def health(self) -> None:
        for encoder in self.encoders:
            encoder.health()

    def close(self) -> None:
        for encoder in self.encoders:
            encoder.close()


def made(settings: Settings, reference: str | None) -> Judges:
    """The verifier whose weights ``reference`` names, or the overlap reference without one, and the relevance judge.

    Blocks. Raises :class:`~models.errors.ModelError`.
    """
    chosen, judge = settings.models.verifier, settings.models.relevance
    encoders: list[PairEncoder] = []
    verifier: Verifier = OverlapVerifier(chosen.threshold)
    name = f"overlap@{chosen.threshold:g}"
    if reference is not None:
        # The overlap reference needs no torch: it is loaded only for a model.
        from models.verifier import PairVerifier

        encoder = _encoder(settings, chosen, reference, "verifier")
        verifier, encoders = PairVerifier(encoder, threshold=chosen.threshold), [encoder]
        name = encoder_name(reference, Catalog(settings.home).locate(reference), encoder.name)
    relevance: PairEncoder | None = None
    if judge.kind == "pair":
        if encoders and judge.model == chosen.model:
            relevance = encoders[0].beside("relevance")
        if relevance is None:
            relevance = _encoder(settings, judge, str(judge.model), "relevance")
            encoders.append(relevance)
    return Judges(verifier, name, relevance, tuple(encoders))


@serve.deployment(name="Verifier")
class VerifierDeployment(EncoderDeployment[Judges]):
    """Without a reference to a pair classifier it counts words, as the overlap reference does."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        self._settings = settings
        chosen = settings.models.verifier
        await self._begin(chosen.model if chosen.kind == "pair" else None)

    async def _ready(self, reference: str | None) -> Judges:
        """The judges, once they have answered."""
        new = await asyncio.to_thread(made, self._settings, reference)
        if isinstance(new.verifier, ReadsPairs):
            await new.verifier.warm_up()
        deadline = deadline_in(WARM_UP_S)
        await new.verifier.verify([Pair("A text.", "A claim.")], deadline=deadline)
        if new.relevance is not None:
            await new.relevance.score([("A text.", "A question?")], deadline=deadline)
        return new

    async def verify(self, pairs: list[Pair], *, timeout_s: float) -> list[Verdict]:
        return (await self.read(pairs, timeout_s=timeout_s))[0]

    async def read(self, pairs: list[Pair], *, timeout_s: float) -> tuple[list[Verdict], Scored]:
        """The verdicts, with what was read of each premise and where the time went."""
        self._count()
        deadline = deadline_in(timeout_s)
        async with self._current.use() as current:
            verdicts, scored = await _read(current.verifier, pairs, deadline)
        self._measured(scored.phases)
        named = [replace(verdict, version=current.name) for verdict in verdicts]
        return named, replace(scored, version=current.name)

    async def relevance(self, pairs: list[tuple[str, str]], *, timeout_s: float) -> list[float]:
        """How well each statement answers the question beside it, in [0, 1]."""
        async with self._current.use() as current:
            if current.relevance is None:
                raise UnavailableError("models.relevance.kind is rare_words: no relevance judge is loaded here")
            return await current.relevance.score(pairs, deadline=deadline_in(timeout_s))


async def _read(verifier: Verifier, pairs: Sequence[Pair], deadline: Deadline) -> tuple[list[Verdict], Scored]:
    if isinstance(verifier, ReadsPairs):
        return await verifier.read(pairs, deadline=deadline)
    verdicts = list(await verifier.verify(pairs, deadline=deadline))
    return verdicts, Scored(tuple(PairScore(verdict.score) for verdict in verdicts), Phases())


def _encoder(
    settings: Settings, chosen: VerifierSettings | RelevanceSettings, reference: str, head: str
) -> PairEncoder:
    from models.head_encoder import open_pairs

    catalog = Catalog(settings.home)
    folder = catalog.locate(reference)
    return open_pairs(
        folder,
        order="document_first" if head == "verifier" else "settled_first",
        head=head,
        base=catalog.base_of(folder),
        long_document=settings.models.verifier.long_document,
        backend=chosen.backend,
        home=settings.home,
        **encoder_options(chosen, settings.deployments.verifier),
    )
