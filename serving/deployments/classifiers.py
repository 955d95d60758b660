"""What chooses the route of a question, as the settings have it, and what an answer's ``versions`` call it."""

from __future__ import annotations

from pathlib import Path

from models.catalog import Catalog, fingerprint
from models.classifier import NgramClassifier
from serving.answer.routing import RuleClassifier
from serving.answer.seams import Classifier
from serving.settings import Settings

RULES = "rules"


def classifier_of(settings: Settings) -> Classifier:
    """Raises :class:`~models.errors.ModelError` when the weights are not there or are another model's."""
    folder = _weights(settings)
    return RuleClassifier() if folder is None else NgramClassifier(folder)


def router_name(settings: Settings) -> str:
    """``rules``, or the folder of the weights with their hash: ``classifier@0123456789ab``."""
    folder = _weights(settings)
    return RULES if folder is None else f"{folder.name}@{fingerprint(folder)}"


def _weights(settings: Settings) -> Path | None:
    chosen = settings.models.classifier
    if chosen.kind == "rules" or chosen.model is None:
        return None
    return Catalog(settings.home).locate(chosen.model)
