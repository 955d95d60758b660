"""The trained query classifier: what its weights say, and what it does in doubt."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from models.classifier import Head, NgramClassifier, decide, save
from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.ngrams import Grams
from serving.answer.types import Deadline, Route

GRAMS = Grams(bits=12)
SHARES = st.floats(0.0, 1.0)


def weights(*texts: str) -> np.ndarray:
    """Weights whose score is high for these texts."""
    found = np.zeros(2**GRAMS.bits, dtype=np.float32)
    for text in texts:
        hashed = GRAMS.hashed(text)
        found[hashed.buckets] += hashed.weights
    return found


def folder(path: Path, *, search_above: float = 0.9) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    heads = (Head(bias=-1.0, scale=6.0, threshold=search_above), Head(bias=-0.6, scale=9.0))
    made = (weights("github login", "pypi.org"), weights("which is older, emacs or vim?"))
    save(path, GRAMS, heads, made, {"seed": 7})
    return path


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> NgramClassifier:
    return NgramClassifier(folder(tmp_path_factory.mktemp("weights") / "classifier"))


@pytest.mark.parametrize(
    ("question", "route"),
    [
        ("pypi.org", Route.SEARCH),
        ("GitHub  login", Route.SEARCH),
        ("which is older, emacs or vim", Route.AGENTIC),
        ("when did rome fall?", Route.SINGLE_PASS),
        ("", Route.SINGLE_PASS),
    ],
)
async def test_it_routes_as_its_weights_say(classifier: NgramClassifier, question: str, route: Route) -> None:
    found = await classifier.classify(question, deadline=Deadline.after(1.0, time.monotonic))
    judged = classifier.judge(question)
    assert found.route is judged.route is route
    assert found.cue == f"classifier {judged.probability:.2f}"
    assert judged == classifier.judge(question)


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_has_a_route_and_a_probability(classifier: NgramClassifier, question: str) -> None:
    judged = classifier.judge(question)
    assert 0.0 <= judged.probability <= 1.0
    assert 0.0 <= judged.search <= 1.0
    assert 0.0 <= judged.agentic <= 1.0


def test_a_text_of_any_length_has_a_route(classifier: NgramClassifier) -> None:
    for question in ("x" * 100_000, "why \u0301" * 25_000, "？" * 100_000):
        assert classifier.judge(question).route in Route


@given(SHARES, SHARES, SHARES, SHARES)
def test_in_doubt_it_is_a_single_pass(search: float, agentic: float, first: float, second: float) -> None:
    judged = decide(search, agentic, search_above=first, agentic_above=second)
    if search < first and agentic < second:
        assert judged.route is Route.SINGLE_PASS
    assert (judged.route is Route.SEARCH) == (search >= first)
    assert 0.0 <= judged.probability <= 1.0


@given(SHARES, SHARES)
def test_the_three_routes_share_one_probability(search: float, agentic: float) -> None:
    every = [
        decide(search, agentic, search_above=first, agentic_above=second).probability
        for first, second in ((0.0, 0.0), (2.0, 0.0), (2.0, 2.0))
    ]
    assert sum(every) == pytest.approx(1.0)


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_a_probability_rises_with_its_score(low: float, high: float) -> None:
    head = Head(bias=0.3, scale=2.0, offset=-1.0)
    assert (head.probability(low) <= head.probability(high)) == (low <= high) or head.probability(
        low
    ) == head.probability(high)


def test_a_higher_threshold_sends_less_to_search(tmp_path: Path) -> None:
    strict = NgramClassifier(folder(tmp_path / "strict", search_above=1.0))
    assert strict.judge("pypi.org").route is Route.SINGLE_PASS


def test_its_name_is_that_of_its_weights(classifier: NgramClassifier, tmp_path: Path) -> None:
    same = folder(tmp_path / "classifier")
    assert classifier.name == NgramClassifier(same).name == f"classifier@{fingerprint(same)}"
    assert NgramClassifier(folder(same, search_above=0.8)).name != classifier.name


def test_weights_are_half_as_large(tmp_path: Path) -> None:
    size = (folder(tmp_path) / "model.safetensors").stat().st_size
    assert size < 2 * 2 * 2**GRAMS.bits + 1_000


def damaged(path: Path, **changes: object) -> Path:
    folder(path)
    described = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**described, **changes}))
    return path


def test_other_weights_are_refused_with_what_to_do(tmp_path: Path) -> None:
    cases = {
        "no ngram-classifier of format 1: give shipped:classifier": damaged(tmp_path / "kind", model_type="bert"),
        "no ngram-classifier of format 1": damaged(tmp_path / "format", format=2),
        "is damaged": damaged(tmp_path / "grams", grams={"letters": [1, 2]}),
        "weights of other n-grams": damaged(tmp_path / "bits", grams={"bits": 10}),
    }
    cut = folder(tmp_path / "cut")
    (cut / "model.safetensors").write_bytes(b"cut off")
    cases["cannot be read"] = cut
    named = folder(tmp_path / "named")
    save_file({"other": np.zeros(3, dtype=np.float16)}, named / "model.safetensors")
    cases["model.safetensors cannot be read"] = named
    for said, path in cases.items():
        with pytest.raises(ModelUnusableError, match=said):
            NgramClassifier(path)
    with pytest.raises(ModelUnusableError, match="cannot be read"):
        NgramClassifier(tmp_path)
