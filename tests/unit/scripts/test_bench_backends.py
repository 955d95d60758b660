"""The benchmark of backends: what counts as the same ranking, what the bars hold, and that it measures encoders."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.models.tiny_checkpoints import pair_classifier

SCRIPTS = Path(__file__).parents[3] / "scripts"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        spec = importlib.util.spec_from_file_location("bench_backends", SCRIPTS / "bench_backends.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPTS))
    return module


SCORES = st.lists(st.integers(-1000, 1000), min_size=2, max_size=30, unique=True)


@given(scores=SCORES)
def test_a_ranking_agrees_with_itself_and_with_what_keeps_its_order(bench: ModuleType, scores: list[int]) -> None:
    own = np.array(scores, dtype=float)
    same = bench.agreement([own, own], [own, own / 7 + 3])
    assert (same.tau, same.same, same.ordered, same.equal) == (pytest.approx(1.0), 1.0, 1.0, True)
    assert bench.agreement([own], [-own]).tau == pytest.approx(-1.0)


def test_rankings_differ_by_set_by_order_and_by_score(bench: ModuleType) -> None:
    exact = np.linspace(1.0, 0.0, 12)
    moved, left = exact.copy(), exact.copy()
    moved[[0, 1]] = exact[[1, 0]]
    left[[9, 10]] = exact[[10, 9]]
    found = bench.agreement([moved, exact], [exact, exact])
    assert (found.same, found.ordered) == (1.0, 0.5)
    assert found.tau == pytest.approx(1 - 1 / 66)
    assert found.difference == pytest.approx(1 / 11)
    assert not bench.agreement([moved], [exact]).equal  # one pair of 66 is more than a hundredth
    assert bench.agreement([left], [exact]).same == 0.0
    assert bench.agreement([np.zeros(12)], [exact]).tau == 0.0
    with pytest.raises(ValueError, match="no query"):
        bench.agreement([], [])


@pytest.mark.parametrize(
    ("tau", "same", "other", "fine"),
    [
        (1.0, 1.0, 104.0, [True, True, True]),
        (1.0, 1.0, 106.0, [True, True, False]),
        (0.98, 1.0, 90.0, [False, True, True]),
        (1.0, 0.9, 90.0, [True, False, True]),
    ],
)
def test_bars(bench: ModuleType, tau: float, same: float, other: float, fine: list[bool]) -> None:
    equal, loose = bench.Agreement(1.0, 1.0, 1.0, 0.0), bench.Agreement(0.5, 1.0, 1.0, 0.1)
    found = {
        bench.REFERENCE: equal,
        bench.DEFAULT: bench.Agreement(tau, same, 1.0, 0.0),
        "other": equal,
        "fast and loose": loose,
    }
    speeds = {bench.REFERENCE: 50.0, bench.DEFAULT: 100.0, "other": other, "fast and loose": 900.0}
    assert [bar["ok"] for bar in bench.bars(speeds, found, 8)] == fine


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(SCRIPTS.parent), "ANSWER_HOME": str(home), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPTS / "bench_backends.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_without_data_it_cannot_run(tmp_path: Path) -> None:
    done = run("--data", str(tmp_path / "nowhere"), "--no-peers", home=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout.splitlines()[-1])["bars"] == []


def test_it_measures_a_classifier_and_ends_with_the_bars(tmp_path: Path) -> None:
    (tmp_path / "rerank").mkdir()
    for name in ("hotpotqa_distractor", "selqa"):
        passages = [{"title": "fox", "text": f"the fox runs over {word}", "relevance": 0} for word in ("dog", "moon")]
        with gzip.open(tmp_path / "rerank" / f"{name}.dev.jsonl.gz", "wt") as file:
            file.write(json.dumps({"id": "1", "query": "the quick fox", "passages": passages}) + "\n")
    model = pair_classifier(tmp_path / "model", labels={0: "no", 1: "yes"})
    few = ("--rounds", "1", "--threads", "1", "--no-peers", "--only", "float32, eager", "int8", "--json")
    done = run("--data", str(tmp_path), "--model", f"path:{model}", *few, home=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert found["pairs"] == 4
    assert [bar["name"] for bar in found["bars"]][:1] == ["Kendall tau of the default"]
    eager = next(one for one in found["backends"] if one["name"] == "torch float32, eager attention")
    assert eager["tau"] == 1.0
    assert eager["largest_difference"] < 1e-4
    assert {"torch int8, sdpa", "the product, float32", "the product, as it comes"} < {
        one["name"] for one in found["backends"]
    }
