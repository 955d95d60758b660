"""The Verifier deployment over tiny real heads: two judges, one encoder in memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from ray.serve.handle import DeploymentHandle
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from models import pair_heads
from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.heads_config import Calibration, HeadsConfig
from serving.answer.errors import UnavailableError
from serving.answer.reference import RareWordRelevance
from serving.answer.relevance import ScoredRelevance
from serving.answer.seams import Pair
from serving.answer.types import Claim, Deadline, Passage, Reason, Span
from serving.cli.evaluating.local import LocalHandle
from serving.deployments.handles import RemoteRelevance, RemoteRetriever
from serving.deployments.router import relevance_of
from serving.deployments.verifier import VerifierDeployment, engine_options
from serving.settings import Settings, parse
from tests import tiny
from tests.unit.models.family_checkpoints import roberta
from tests.unit.models.tiny_checkpoints import pair_classifier, tokenizer

DEADLINE = Deadline.after(600, time.monotonic)


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads")
    whole, base, made = folder / "whole", folder / "base", folder / "made"
    pair_classifier(whole, labels={0: "no", 1: "yes"})
    AutoModel.from_pretrained(whole).save_pretrained(base)
    tokenizer().save_pretrained(base)
    made.mkdir()
    torch.manual_seed(1)
    tasks = ("verifier", "relevance")
    config = HeadsConfig(f"path:{base}", fingerprint(base), tasks, 8, 48, {task: Calibration() for task in tasks})
    pair_heads.save(pair_heads.fresh(base, tasks, 8), config, made)
    tokenizer().save_pretrained(made)
    return made


def settings(home: Path, **models: dict[str, Any]) -> Settings:
    return parse({"home": str(home), "models": models})


async def replica(chosen: Settings) -> Any:
    made: Any = VerifierDeployment.func_or_class
    begun = made.__new__(made)
    await made.__init__(begun, chosen)
    return begun


async def test_both_judges_are_heads_of_one_encoder(heads: Path, tmp_path: Path) -> None:
    model = {"kind": "pair", "model": f"path:{heads}", "threads": 1, "threshold": 0.5}
    chosen = settings(tmp_path, verifier=model, relevance=model)
    made = await replica(chosen)
    judges = made._current.current
    assert judges.relevance._model is judges.encoders[0]._model
    assert len(judges.encoders) == 1
    (verdict,) = await made.verify([Pair("the fox runs", "the fox")], timeout_s=60)
    handle = cast("DeploymentHandle", LocalHandle(made))
    (score,) = await RemoteRelevance(handle)([("the fox runs", "the fox")], deadline=DEADLINE)
    assert verdict.score != score
    judge = relevance_of(chosen, handle, RemoteRetriever(handle))
    assert isinstance(judge, ScoredRelevance)
    claim = Claim("the fox runs", Span(0, 12), chunks=(0,))
    found = await judge.relevant("the fox", [claim], [Passage(id="a", text="x")], deadline=DEADLINE)
    assert found == [score >= 0.5]


async def test_without_a_judge_rare_words_decide_and_the_model_is_not_asked(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    made = await replica(chosen)
    handle = cast("DeploymentHandle", LocalHandle(made))
    assert isinstance(relevance_of(chosen, handle, RemoteRetriever(handle)), RareWordRelevance)
    with pytest.raises(UnavailableError, match="rare_words"):
        await made.relevance([("a", "b")], timeout_s=60)


async def test_a_family_reads_and_decides_in_its_own_way(tmp_path: Path) -> None:
    folder = roberta(tmp_path / "minicheck")
    model = {"kind": "pair", "model": f"path:{folder}", "threads": 1, "family": "minicheck_roberta"}
    made = await replica(settings(tmp_path, verifier=model))
    asked = [Pair("The tower was built.", "The tower is old."), Pair("A river is small and near.", "A bridge opened.")]
    verdicts = await made.verify(asked, timeout_s=60)
    tokenizer, judge = (kind.from_pretrained(folder) for kind in (AutoTokenizer, AutoModelForSequenceClassification))
    with torch.inference_mode():
        expected = [
            judge.eval()(**tokenizer(f"{one.premise}</s>{one.claim}", return_tensors="pt"))
            .logits.softmax(-1)[0, 1]
            .item()
            for one in asked
        ]
    assert [verdict.score for verdict in verdicts] == pytest.approx(expected, abs=1e-4)
    assert [verdict.reason is Reason.ENTAILED for verdict in verdicts] == [score > 0.5 for score in expected]


async def test_a_checkpoint_of_another_family_is_refused(tmp_path: Path) -> None:
    folder = roberta(tmp_path / "minicheck")
    for family, fix in {"factcg": "deberta-v2", "bespoke_minicheck": "a causal language model"}.items():
        model = {"kind": "pair", "model": f"path:{folder}", "threads": 1, "family": family}
        with pytest.raises(ModelUnusableError, match=fix):
            await replica(settings(tmp_path, verifier=model))


def test_the_engine_of_a_verifier_that_writes_stays_in_its_share(tmp_path: Path) -> None:
    folder = tiny.model(tmp_path / "chat")
    model = {
        "kind": "pair",
        "model": f"path:{folder}",
        "family": "bespoke_minicheck",
        "device": "cuda",
        "dtype": "auto",
    }
    tree = {
        "home": str(tmp_path),
        "models": {"verifier": model},
        "deployments": {"verifier": {"num_replicas": 1, "num_gpus": 0.4}},
    }
    options = engine_options(parse(tree), f"path:{folder}")
    assert (options.max_model_len, options.dtype) == (2048, "auto")
    assert (options.gpu_memory_utilization, options.kv_cache_gib) == (0.4, None)
    assert options.enable_prefix_caching
    model |= {"device": "cpu", "max_tokens": 1024, "dtype": "float32"}
    tree["deployments"] = {}
    options = engine_options(parse(tree), f"path:{folder}")
    assert (options.max_model_len, options.dtype, options.kv_cache_gib) == (1024, "float32", 0.5)
