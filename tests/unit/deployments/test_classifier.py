"""The Router's classifier: the rules, or weights that can be replaced while it answers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from models.errors import ModelNotFoundError, ModelUnusableError
from models.weights import WeightsStore
from serving.answer.types import Deadline, Route
from serving.deployments.classifier import RULES, ReplaceableClassifier, made_as_set
from serving.settings import Settings, parse
from tests.unit.models.test_ngram_classifier import folder


def settings(home: Path, model: str | None = None) -> Settings:
    chosen = {"kind": "ngram", "model": model} if model else {"kind": "rules"}
    return parse({"home": str(home), "models": {"classifier": chosen}})


async def routed(classifier: ReplaceableClassifier, question: str) -> tuple[Route, str]:
    routing = await classifier.classify(question, deadline=Deadline.after(5.0, time.monotonic))
    return routing.route, routing.version


def test_without_weights_the_rules_route(tmp_path: Path) -> None:
    assert made_as_set(settings(tmp_path)).name == RULES


async def test_weights_route_as_set_and_name_themselves(tmp_path: Path) -> None:
    chosen = settings(tmp_path, f"path:{folder(tmp_path / 'classifier')}")
    name = made_as_set(chosen).name
    assert name.startswith("classifier@")
    # Asked what only these weights know: to the rules it is a plain question.
    assert await routed(ReplaceableClassifier(chosen), "which is older, emacs or vim?") == (Route.AGENTIC, name)


async def test_weights_take_the_rules_place_and_give_it_back(tmp_path: Path) -> None:
    stored = WeightsStore(tmp_path).add("classifier", folder(tmp_path / "made"), progress=lambda _: None)
    classifier = ReplaceableClassifier(settings(tmp_path))
    assert (await routed(classifier, "GitHub login"))[1] == RULES
    assert await classifier.take(stored.reference) == f"classifier@{stored.hash}"
    assert await routed(classifier, "GitHub login") == (Route.SEARCH, f"classifier@{stored.hash}")
    assert await classifier.take(None) == RULES
    assert (await routed(classifier, "GitHub login"))[1] == RULES


@pytest.mark.parametrize("reference", ["weights:classifier@0123456789ab", "path:/nowhere"])
async def test_what_is_not_there_leaves_the_old_one(tmp_path: Path, reference: str) -> None:
    classifier = ReplaceableClassifier(settings(tmp_path))
    with pytest.raises(ModelNotFoundError):
        await classifier.take(reference)
    assert (await routed(classifier, "GitHub login"))[1] == RULES


async def test_weights_of_another_kind_are_refused(tmp_path: Path) -> None:
    other = folder(tmp_path / "other")
    (other / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelUnusableError):
        await ReplaceableClassifier(settings(tmp_path)).take(f"path:{other}")
