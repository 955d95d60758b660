"""The Verifier deployment: a pair classifier, or the overlap reference where none is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, runtime_checkable

from ray import serve

from models.catalog import Catalog
from models.swapping import Swap
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair, Verifier
from serving.answer.types import Deadline, PairScore, Phases, Scored, Verdict
from serving.deployments.base import WARM_UP_S, ReplaceableDeployment, deadline_in, encoder_name, encoder_options
from serving.deployments.replacing import Part, Replaceable
from serving.settings import Settings


@runtime_checkable
class ReadsPairs(Protocol):
    """A verifier that can say what it read of each premise."""

    async def read(self, pairs: Sequence[Pair], *, deadline: Deadline) -> tuple[list[Verdict], Scored]: ...

    async def warm_up(self) -> None: ...


class Named(NamedTuple):
    """A verifier, the name that answers carry for it, what raises when it is not healthy, what gives back memory."""

    verifier: Verifier
    name: str
    health: Callable[[], None]
    close: Callable[[], None]


def made(settings: Settings, reference: str | None) -> Named:
    """The verifier whose weights ``reference`` names; the overlap reference without one. Blocks.

    Raises :class:`~models.errors.ModelError`.
    """
    chosen = settings.models.verifier
    if reference is None:
        return Named(OverlapVerifier(chosen.threshold), f"overlap@{chosen.threshold:g}", lambda: None, lambda: None)
    # The overlap reference needs no torch: it is loaded only for a model.
    from models.encoder import PairEncoder
    from models.verifier import PairVerifier

    folder = Catalog(settings.home).locate(reference)
    options = encoder_options(chosen, settings.deployments.verifier)
    encoder = PairEncoder(folder, order="document_first", long_document=chosen.long_document, **options)
    verifier = PairVerifier(encoder, threshold=chosen.threshold)
    return Named(verifier, encoder_name(reference, folder, encoder.name), encoder.health, verifier.close)


@serve.deployment(name="Verifier")
class VerifierDeployment(ReplaceableDeployment):
    """Its ``user_config``: ``model``, a reference to a pair classifier, or null for the overlap reference."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        self._settings = settings
        model = settings.models.verifier.model if settings.models.verifier.kind == "pair" else None
        self._current = Swap(await self._ready(model))
        part = Part(model, self._current.current.name, model)
        self._replaceable = Replaceable({"model": part}, {"model": self._take})

    async def _take(self, reference: str | None) -> str:
        new = await self._ready(reference)
        await self._current.hand_over(new, lambda old: asyncio.to_thread(old.close))
        return new.name

    async def _ready(self, reference: str | None) -> Named:
        """The verifier, once it has answered."""
        new = await asyncio.to_thread(made, self._settings, reference)
        if isinstance(new.verifier, ReadsPairs):
            await new.verifier.warm_up()
        await new.verifier.verify([Pair("A text.", "A claim.")], deadline=deadline_in(WARM_UP_S))
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
        return [replace(verdict, version=current.name) for verdict in verdicts], scored

    async def check_health(self) -> None:
        self._current.current.health()

    async def name(self) -> str:
        return self._current.current.name


async def _read(verifier: Verifier, pairs: Sequence[Pair], deadline: Deadline) -> tuple[list[Verdict], Scored]:
    if isinstance(verifier, ReadsPairs):
        return await verifier.read(pairs, deadline=deadline)
    verdicts = list(await verifier.verify(pairs, deadline=deadline))
    return verdicts, Scored(tuple(PairScore(verdict.score) for verdict in verdicts), Phases())
