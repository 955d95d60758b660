"""Pair encoders from data to judgement, on a tiny real encoder, and the pure parts of calibrating and judging."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from transformers import AutoModel

from finetune.errors import JobError
from finetune.jobs import JOBS
from finetune.judging import better
from finetune.pairs import scoring
from finetune.pairs.bm25 import Bm25
from finetune.pairs.calibrating import KEPT, even, fit, keeping, precise, precision, quoted
from finetune.pairs.cases import ClaimCase, QuestionCase
from finetune.pairs.judge import Claims, across
from finetune.pairs.settings import PairSettings
from finetune.run import Run
from finetune.settings import load, parse
from models.encoder import PairEncoder
from models.head_encoder import HeadEncoder
from models.heads_config import HeadsConfig
from serving.answer.types import Passage
from tests.unit.models.tiny_checkpoints import pair_classifier, tokenizer

CONFIGS = Path(__file__).parents[3] / "configs" / "finetune"
FILES = ("encoder", "verifier", "reranker", "relevance", "verifier.gpu", "reranker.gpu")


@pytest.mark.parametrize("name", FILES)
def test_the_shipped_files_are_read_and_name_every_licence(name: str) -> None:
    found = load(PairSettings, CONFIGS / f"{name}.yaml")
    given = found.data.model_dump()
    references = {reference for some in given.values() for reference in some}
    assert references == set(found.licences)
    assert not any(".test." in reference for reference in references)
    assert found.has_held_out
    assert (found.shape == "classifier") == name.endswith("gpu")
    assert name.partition(".")[0] in JOBS


def test_a_classifier_has_one_task() -> None:
    with pytest.raises(JobError, match="one task"):
        parse(PairSettings, {"tasks": ["verifier", "reranker"], "data": {}, "shape": "classifier"})


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path.name


def tree(folder: Path) -> dict[str, Any]:
    """A small world: foxes run, dogs sleep."""
    rng = random.Random(1)
    claims, questions, ranked = [], [], []
    for n in range(24):
        who, does = rng.choice(("fox", "dog")), rng.choice(("runs", "sleeps"))
        text = f"The quick {who} {does} over the moon. The sun is a delta not beta."
        claim = f"The {who} {does if n % 2 else 'moon'}."
        claims.append({"id": f"c{n}", "document": text, "claim": claim, "label": n % 2})
        passage = {"title": ("alpha", "beta")[n % 2], "text": text}
        asked = {"id": f"q{n}", "question": f"Who {does} over the moon?", "passages": [passage]}
        questions.append({**asked, "answers": [who] if n % 3 else [], "answerable": bool(n % 3)})
        right, wrong = {"text": text, "relevance": 1}, {"text": "The lazy gamma.", "relevance": 0}
        ranked.append({"id": f"r{n}", "query": f"Who {does}?", "passages": [right, wrong]})
    made = {"claims": claims, "questions": questions, "ranked": ranked}
    names = {kind: write(folder / f"{kind}.train.jsonl.gz", rows) for kind, rows in made.items()}
    test = write(folder / "claims.test.jsonl.gz", claims)
    return {
        "base": "path:x",
        "tasks": ["verifier", "reranker", "relevance"],
        "data_root": str(folder),
        "data": {kind: [name] for kind, name in names.items()},
        "held_out": {
            "claims_dev": [names["claims"]],
            "claims_test": [test],
            "ranked_dev": [names["ranked"]],
            "questions_dev": [names["questions"]],
        },
        "made_claims": 5,
        "width": 8,
        "window": 60,
        "served_window": 60,
        "max_steps": 3,
        "checkpoint_steps": 3,
        "log_steps": 1,
        "threads": 1,
    }


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    pair_classifier(folder / "whole", labels={0: "no", 1: "yes"})
    AutoModel.from_pretrained(folder / "whole").save_pretrained(folder / "base")
    tokenizer().save_pretrained(folder / "base")
    return folder / "base"


def test_a_run_trains_calibrates_and_is_judged(tmp_path: Path, base: Path) -> None:
    settings = parse(PairSettings, tree(tmp_path))
    job = JOBS["encoder"]
    inputs = job.read(settings)
    assert "verifier claims 24 of 48" in job.preview(settings, inputs)
    run = Run.open("encoder", tmp_path / "run", settings, {})
    job.train(run, settings, inputs, base)
    config = HeadsConfig.read(run.weights)
    assert config is not None
    assert set(config.calibration) == {"verifier", "reranker", "relevance"}
    assert (config.tasks, config.window, len(config.calibration["verifier"].weights)) == (settings.tasks, 60, 3)
    encoder = HeadEncoder(run.weights, base=base, head="verifier", threads=1)
    assert 0.0 < encoder.compute([("The fox runs.", "The fox.")])[0] < 1.0
    encoder.close()
    assert job.judge is not None
    verifier = settings.model_copy(update={"tasks": ("verifier",)})
    ours, theirs = job.judge(verifier, run.weights, base), job.judge(verifier, None, base)
    assert ours.decides == theirs.decides == "verifier: macro balanced accuracy, dev"
    assert better(ours, theirs).n == 24
    names = {bar["name"] for bar in ours.metrics()["bars"]}
    assert {"verifier minus overlap", "guards + verifier minus guards + overlap"} <= names
    assert ours.metrics()["verifier"]["threshold"] == config.calibration["verifier"].threshold


def test_a_large_encoder_becomes_a_sequence_classifier(tmp_path: Path, base: Path) -> None:
    changes = {"tasks": ["verifier"], "shape": "classifier", "max_steps": 1}
    settings = parse(PairSettings, {**tree(tmp_path), **changes})
    job = JOBS["verifier"]
    run = Run.open("verifier", tmp_path / "run", settings, {})
    job.train(run, settings, job.read(settings), base)
    encoder = PairEncoder(run.weights, order="document_first", threads=1)
    assert 0.0 < encoder.compute([("The fox runs.", "The fox.")])[0] < 1.0
    encoder.close()


def test_a_fit_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    given, counted, weights = rng.normal(0, 3, 600), rng.random((600, 1)), rng.random(600)
    labels = rng.random(600) < 1 / (1 + np.exp(-(0.5 * given - 1 + 2 * counted[:, 0])))
    found = fit(given, counted, labels, weights)
    peer = LogisticRegression(C=1e6).fit(np.column_stack([given, counted]), labels, sample_weight=weights)
    assert [found.scale, *found.weights] == pytest.approx(peer.coef_[0].tolist(), abs=0.02)
    assert found.bias == pytest.approx(float(peer.intercept_[0]), abs=0.02)


def test_every_set_and_class_weighs_the_same() -> None:
    labels = np.array([True, False, False, False, True, True])
    weights = even(["a"] * 4 + ["b", "b"], labels)
    assert weights.tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5])


def test_the_threshold_is_the_lowest_precise_one() -> None:
    scores = np.array([0.552, 0.652, 0.752, 0.852, 0.952])
    labels = np.array([False, True, False, True, True])
    assert precise(["a"] * 5, scores, labels) == 0.76
    assert precision(["a"] * 5, scores >= 0.6, labels) == 0.75
    assert np.isnan(precision(["a"] * 5, scores >= 2, labels))


def test_no_threshold_refuses_what_stands_in_its_document() -> None:
    quotations = np.linspace(0.7, 0.9, 201)
    assert keeping(0.6, quotations) == 0.6
    assert keeping(0.88, quotations) == 0.71
    assert (quotations >= keeping(0.88, quotations)).mean() >= KEPT
    assert keeping(0.88, np.full(9, 0.1)) == 0.5
    assert keeping(0.88, np.array([])) == 0.88


def test_quotations_come_from_all_over_and_stand_in_their_document() -> None:
    documents = [
        f"The tower of place {n} is old. Workmen built the bridge of place {n} in {1800 + n}." for n in range(40)
    ]
    cases = [ClaimCase(f"{n}", "a" if n < 20 else "b", (text, text), "c", True) for n, text in enumerate(documents)]
    found = quoted(cases, 10)
    assert len(found) == 10
    assert {case.of for case in found} == {"a", "b"}
    assert all(case.claim in case.documents[0] for case in found)
    assert len({case.claim.split()[1] for case in found}) == 2  # not always the first sentence
    assert quoted([ClaimCase("none", "a", ("",), "c", True)], 10) == []


def test_macro_gives_every_set_the_same_weight() -> None:
    cases = [ClaimCase(f"a{n}", "a", ("d",), "c", supported=n % 2 == 0) for n in range(8)]
    cases += [ClaimCase(f"b{n}", "b", ("d",), "c", supported=n % 2 == 0) for n in range(2)]
    claims = Claims(cases)
    passed = np.array([case.supported for case in cases[:8]] + [False, True])
    assert claims.macro(passed)(np.arange(10)) == 0.5
    assert claims.recall(passed)(np.arange(10)) == 0.5
    assert claims.precision(passed)(np.arange(10)) == 0.5
    assert np.isnan(claims.macro(passed)(np.array([0, 2])))


def test_the_best_chunk_of_a_claim_counts() -> None:
    cases = [ClaimCase("a", "a", ("d", "e"), "c", supported=True), ClaimCase("b", "a", ("f",), "c", supported=False)]
    assert scoring.best_of_documents(cases, [0.1, 0.9, 0.4]).tolist() == [0.9, 0.4]


def test_a_threshold_is_chosen_on_other_titles() -> None:
    def case(title: str, *, answerable: bool) -> QuestionCase:
        return QuestionCase("x", "q", Passage(id="p", title=title, text="t"), "s", answerable=answerable)

    cases = [case("a", answerable=True), case("a", answerable=False), case("b", answerable=True)]
    assert across(cases, np.array([0.2, 0.6, 0.5])).tolist() == [False, True, True]
    with pytest.raises(JobError, match="two titles"):
        across(cases[:2], np.array([0.2, 0.6]))


def test_bm25_prefers_rare_words_and_short_texts() -> None:
    documents = ["the fox runs", "the dog runs", "the dog runs over the moon and the sun", "a dog"]
    scores = Bm25(documents).score("dog fox", documents)
    assert scores[0] > scores[3] > scores[1] > scores[2] > 0
