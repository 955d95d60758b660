"""The Verifier deployment: a pair classifier, or the overlap reference where none is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ray import serve

from models.catalog import Catalog
from models.swapping import Swap
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair, Verifier
from serving.answer.types import Verdict
from serving.deployments.base import WARM_UP_S, ReplaceableDeployment, deadline_in, encoder_name, encoder_options
from serving.deployments.replacing import Part, Replaceable
from serving.settings import Settings


class Named(NamedTuple):
    """A verifier, the name that answers carry for it, and what gives its memory back."""

    verifier: Verifier
    name: str
    close: Callable[[], None]


def made(settings: Settings, reference: str | None) -> Named:
    """The verifier whose weights ``reference`` names; the overlap reference without one. Blocks.

    Raises :class:`~models.errors.ModelError`.
    """
    chosen = settings.models.verifier
    if reference is None:
        return Named(OverlapVerifier(chosen.threshold), f"overlap@{chosen.threshold:g}", lambda: None)
    # The overlap reference needs no torch: it is loaded only for a model.
    from models.encoder import PairEncoder
    from models.verifier import PairVerifier

    folder = Catalog(settings.home).locate(reference)
    options = encoder_options(chosen, settings.deployments.verifier)
    encoder = PairEncoder(folder, order="document_first", **options)
    verifier = PairVerifier(encoder, threshold=chosen.threshold)
    return Named(verifier, encoder_name(reference, folder, encoder.name), verifier.close)


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
        await new.verifier.verify([Pair("A text.", "A claim.")], deadline=deadline_in(WARM_UP_S))
        return new

    async def verify(self, pairs: list[Pair], *, timeout_s: float) -> list[Verdict]:
        self._count()
        async with self._current.use() as current:
            verdicts = await current.verifier.verify(pairs, deadline=deadline_in(timeout_s))
            return [replace(verdict, version=current.name) for verdict in verdicts]

    async def name(self) -> str:
        return self._current.current.name
