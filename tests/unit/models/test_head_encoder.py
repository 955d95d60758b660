"""Heads over a frozen base: what is saved and put together again, and what a head scores."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tiny_checkpoints import WORDS, pair_classifier, tokenizer
from transformers import AutoModel

from models import pair_heads
from models.cpu import Dtype
from models.errors import InputTooLongError, ModelUnusableError
from models.features import features
from models.fingerprint import fingerprint
from models.head_encoder import HeadEncoder, calibrated, open_pairs
from models.heads_config import Calibration, HeadsConfig
from models.pair_heads import DOCUMENT, SETTLED, SHARED, SPECIAL, PairHeads, marks

TASKS = ("verifier", "relevance")
WINDOW = 48
COUNTED = Calibration(scale=2.0, bias=-0.5, weights=(1.0, -2.0, 3.0), threshold=0.7)


def base(folder: Path, seed: int = 0) -> Path:
    pair_classifier(folder / "classifier", labels={0: "no", 1: "yes"}, seed=seed)
    AutoModel.from_pretrained(folder / "classifier").save_pretrained(folder / "base")
    tokenizer().save_pretrained(folder / "base")
    return folder / "base"


def config(made: Path) -> HeadsConfig:
    return HeadsConfig("path:base", fingerprint(made), TASKS, 8, WINDOW, {"verifier": COUNTED})


@pytest.fixture(scope="module")
def encoder_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def trained(encoder_base: Path) -> PairHeads:
    torch.manual_seed(1)
    model = pair_heads.fresh(encoder_base, TASKS, 8)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.05 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture(scope="module")
def folder(trained: PairHeads, encoder_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("heads")
    pair_heads.save(trained, config(encoder_base), made)
    tokenizer().save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def verifier(folder: Path, encoder_base: Path) -> Iterator[HeadEncoder]:
    made = HeadEncoder(folder, base=encoder_base, head="verifier", threads=1, device="cpu")
    yield made
    made.close()


def plain_logit(model: PairHeads, document: str, settled: str, task: int) -> float:
    row = pair_heads.encode(tokenizer(), settled, document, WINDOW)
    with torch.inference_mode():
        return float(model(task=torch.tensor([task]), **pair_heads.pad([row], 0))[0])


def test_the_base_is_not_saved_and_what_is_put_together_is_what_was_trained(
    folder: Path, encoder_base: Path, trained: PairHeads
) -> None:
    held = load_file(folder / "model.safetensors")
    assert not any("word_embeddings" in name or "position_embeddings" in name for name in held)
    assert {tensor.dtype for tensor in held.values()} == {torch.float16}
    loaded = pair_heads.load(folder, encoder_base)
    for task in (0, 1):
        expected = plain_logit(trained, "the quick fox runs", "the fox", task)
        assert plain_logit(loaded, "the quick fox runs", "the fox", task) == pytest.approx(expected, abs=0.02)


def test_another_base_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnusableError, match=r"trained on path:base.*install the version"):
        pair_heads.load(folder, base(tmp_path, seed=5))


def test_weights_that_lack_a_head_are_refused(folder: Path, encoder_base: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    replace(config(encoder_base), tasks=("verifier", "reranker")).write(tmp_path)
    with pytest.raises(ModelUnusableError, match="lacks"):
        pair_heads.load(tmp_path, encoder_base)


def test_the_configuration_is_read_as_it_was_written(folder: Path, encoder_base: Path) -> None:
    assert HeadsConfig.read(folder) == config(encoder_base)
    assert HeadsConfig.read(encoder_base) is None


def test_a_score_is_the_calibrated_logit_of_the_head(verifier: HeadEncoder, folder: Path, encoder_base: Path) -> None:
    document, claim = "the quick fox runs over the dog", "the moon runs"
    logit = plain_logit(pair_heads.load(folder, encoder_base), document, claim, 0)
    expected = calibrated(logit, COUNTED, features(document, claim))
    assert verifier.compute([(document, claim)])[0] == pytest.approx(expected, abs=0.03)
    assert verifier.threshold == 0.7


def test_a_head_beside_shares_the_weights_and_has_its_own_scores(
    verifier: HeadEncoder, folder: Path, encoder_base: Path
) -> None:
    other = verifier.beside("relevance")
    assert other is not None
    assert other._model is verifier._model
    pair = ("the quick fox runs over the dog", "the moon runs")
    logit = plain_logit(pair_heads.load(folder, encoder_base), *pair, 1)
    assert other.compute([pair])[0] == pytest.approx(1 / (1 + math.exp(-logit)), abs=0.03)
    # Together in one pass, each row goes to its own head.
    alone = [verifier.compute([pair])[0], other.compute([pair])[0]]
    assert alone[0] != pytest.approx(alone[1], abs=0.01)

    async def together() -> list[list[float]]:
        return list(await asyncio.gather(verifier.score([pair]), other.score([pair])))

    assert asyncio.run(together()) == [[pytest.approx(score, abs=0.01)] for score in alone]
    assert verifier.threshold == 0.7
    assert verifier.beside("reranker") is None


def test_a_long_document_is_split_and_a_long_claim_refused(verifier: HeadEncoder) -> None:
    long = " ".join(WORDS * 6)
    rows, truncated = verifier._reader.rows(0, long, "the fox")
    assert not truncated
    assert len(rows) > 2
    claim = tokenizer()("the fox", add_special_tokens=False)["input_ids"]
    assert all(row.tokens["input_ids"][1 : 1 + len(claim)] == claim for row in rows)
    assert all(row.length <= WINDOW for row in rows)
    with pytest.raises(InputTooLongError):
        verifier.compute([("the fox", long)])


@pytest.mark.parametrize(("dtype", "attention"), [("float32", "sdpa"), ("bfloat16", "eager")])
def test_how_it_attends_goes_by_its_precision(folder: Path, encoder_base: Path, dtype: Dtype, attention: str) -> None:
    made = HeadEncoder(folder, base=encoder_base, head="verifier", threads=1, device="cpu", dtype=dtype)
    assert made._model.encoder.config._attn_implementation == attention
    made.close()


def test_a_head_that_is_not_there_is_refused_by_name(folder: Path, encoder_base: Path) -> None:
    with pytest.raises(ModelUnusableError, match="no head 'reranker'; its heads: verifier, relevance"):
        HeadEncoder(folder, base=encoder_base, head="reranker", threads=1)


def test_without_a_base_it_is_a_sequence_classifier(tmp_path: Path) -> None:
    made = open_pairs(
        pair_classifier(tmp_path, labels={0: "no", 1: "yes"}), order="document_first", head="x", base=None, threads=1
    )
    assert not isinstance(made, HeadEncoder)
    assert made.beside("relevance") is None
    made.close()


def test_marks_say_the_side_and_what_stands_on_both() -> None:
    assert marks([1, 7, 8, 2, 8, 9, 2], [None, 0, 0, None, 1, 1, None]) == [
        SPECIAL,
        SETTLED,
        SETTLED + SHARED,
        SPECIAL,
        DOCUMENT + SHARED,
        DOCUMENT,
        SPECIAL,
    ]


@given(st.floats(-500, 500), st.floats(-500, 500))
def test_calibration_keeps_the_order_and_stays_a_probability(one: float, other: float) -> None:
    given_ = Calibration(scale=1.5, bias=0.2)
    low, high = sorted((one, other))
    assert 0.0 <= calibrated(low, given_, ()) <= calibrated(high, given_, ()) <= 1.0


def test_features_are_shares_of_the_settled_text() -> None:
    assert features("The tower has 20 floors.", "The tower has 20 floors.") == (1.0, 1.0, 0.0)
    share, whole, lacking = features("The tower has 20 floors.", "The tower has 25 rooms.")
    assert (round(share, 2), whole, lacking) == (0.33, 0.0, 1.0)
    assert features("x", "") == (0.0, 0.0, 0.0)
