"""The Router's query classifier, which new weights can replace between two questions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import NamedTuple

from models.catalog import Catalog
from models.classifier import NgramClassifier
from models.swapping import Swap
from serving.answer.routing import RuleClassifier
from serving.answer.seams import Classifier
from serving.answer.types import Deadline, Routing
from serving.deployments.base import encoder_name
from serving.deployments.replacing import Part
from serving.settings import Settings

RULES = "rules"


class Named(NamedTuple):
    """A classifier, and the name that answers carry for it."""

    classifier: Classifier
    name: str


def made(settings: Settings, reference: str | None) -> Named:
    """The classifier whose weights ``reference`` names; the rules without one. Blocks.

    Raises :class:`~models.errors.ModelError`.
    """
    if reference is None:
        return Named(RuleClassifier(), RULES)
    folder = Catalog(settings.home).locate(reference)
    classifier = NgramClassifier(folder)
    return Named(classifier, encoder_name(reference, folder, classifier.name))


def reference_of(settings: Settings) -> str | None:
    """What the settings name; None for the rules."""
    chosen = settings.models.classifier
    return chosen.model if chosen.kind == "ngram" else None


def made_as_set(settings: Settings) -> Named:
    """The classifier that the settings name. Raises :class:`~models.errors.ModelError`."""
    return made(settings, reference_of(settings))


class ReplaceableClassifier:
    """The seam :class:`~serving.answer.seams.Classifier` over one that can be replaced."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        reference = reference_of(settings)
        self._current = Swap(made(settings, reference))
        self.part = Part(reference, self._current.current.name, reference)

    async def classify(self, question: str, *, deadline: Deadline) -> Routing:
        async with self._current.use() as current:
            routing = await current.classifier.classify(question, deadline=deadline)
            return replace(routing, version=current.name)

    async def take(self, reference: str | None) -> str:
        """Classifies with what ``reference`` names from now on."""
        new = await asyncio.to_thread(made, self._settings, reference)
        await self._current.hand_over(new, _forget)
        return new.name


async def _forget(_old: Named) -> None:
    """A classifier holds nothing that its collection does not give back."""
