"""Who may grade: never the model that gates, its kin only when owned up to."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.cli.console import Steps
from serving.cli.evaluating.cache import OutputCache
from serving.cli.evaluating.errors import EvaluationError
from serving.cli.evaluating.grading import choose_grader, judge
from serving.settings import Settings, parse
from tests.unit.models.tiny_checkpoints import pair_classifier

LABELS = {0: "no", 1: "entailment"}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("weights")
    folders = {
        name: pair_classifier(root / name, labels=LABELS, seed=seed) for seed, name in enumerate(("gate", "kin"))
    }
    other = pair_classifier(root / "other", labels=LABELS, seed=5)
    config = other / "config.json"
    config.write_text(config.read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3'))
    return {**folders, "other": other}


def settings(gate: Path | None, home: Path) -> Settings:
    verifier = {"kind": "pair", "model": f"path:{gate}"} if gate else {"kind": "overlap"}
    return parse({"home": str(home), "models": {"verifier": verifier}})


def test_the_gate_is_never_the_grader(weights: dict[str, Path], tmp_path: Path) -> None:
    chosen = settings(weights["gate"], tmp_path)
    for kin in (False, True):
        with pytest.raises(EvaluationError, match="gates the answers"):
            choose_grader(chosen, f"path:{weights['gate']}", threshold=0.5, kin=kin)


def test_kin_must_be_owned_up_to(weights: dict[str, Path], tmp_path: Path) -> None:
    chosen = settings(weights["gate"], tmp_path)
    with pytest.raises(EvaluationError, match="--kin"):
        choose_grader(chosen, str(weights["kin"]), threshold=0.5, kin=False)
    grader, _ = choose_grader(chosen, str(weights["kin"]), threshold=0.5, kin=True)
    assert grader.kin


def test_another_model_is_no_kin(weights: dict[str, Path], tmp_path: Path) -> None:
    for gate in (weights["gate"], None):
        grader, folder = choose_grader(settings(gate, tmp_path), str(weights["other"]), threshold=0.4, kin=False)
        assert (grader.kind, grader.kin, grader.threshold, folder) == ("nli", False, 0.4, weights["other"])


def test_without_a_grader_strings_judge(tmp_path: Path) -> None:
    grader, folder = choose_grader(settings(None, tmp_path), None, threshold=0.5, kin=False)
    assert (grader.kind, folder) == ("reference", None)


async def test_each_pair_is_judged_once(
    weights: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grader, folder = choose_grader(settings(None, tmp_path), str(weights["kin"]), threshold=0.5, kin=False)
    assert folder is not None
    cache = OutputCache(tmp_path / "c.sqlite")
    pairs = [("the fox runs", "dog sleeps"), ("moon", "sun is not"), ("the fox runs", "dog sleeps")]
    table = await judge(pairs, grader, folder, cache=cache, steps=Steps(), threads=1)
    first = [table(*pair) for pair in pairs]
    monkeypatch.setattr("models.encoder.PairEncoder.__init__", lambda *_, **__: pytest.fail("graded before"))
    again = await judge(pairs, grader, folder, cache=cache, steps=Steps(), threads=1)
    assert [again(*pair) for pair in pairs] == first
    strict = grader.model_copy(update={"threshold": 0.999999})
    severe = await judge(pairs, strict, folder, cache=cache, steps=Steps(), threads=1)
    assert not any(severe(*pair) for pair in pairs)
