"""Encoders whose layers OpenVINO computes: the scores of torch, whatever the shape; what is kept; what is refused."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tiny_checkpoints import WORDS, pair_classifier, tokenizer
from transformers import AutoModel

from models import pair_heads
from models.backends.openvino import OpenVinoBody, library
from models.encoder import PairEncoder
from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.head_encoder import HeadEncoder
from models.heads_config import HeadsConfig

PAIRS = [(" ".join(WORDS[number % 7 :] * (1 + number % 3)), f"the {WORDS[number % 12]} runs") for number in range(40)]


def installed() -> bool:
    try:
        library()
    except ModelUnusableError:
        return False
    return True


needs_openvino = pytest.mark.skipif(not installed(), reason="the extra `openvino` is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pair_classifier(tmp_path_factory.mktemp("pairs"), labels={0: "no", 1: "yes"})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def torchs(folder: Path) -> Iterator[PairEncoder]:
    made = PairEncoder(folder, order="settled_first", threads=1, batch_tokens=256, device="cpu")
    yield made
    made.close()


@pytest.fixture(scope="module")
def theirs(folder: Path, home: Path) -> Iterator[PairEncoder]:
    made = PairEncoder(
        folder, order="settled_first", threads=1, batch_tokens=256, device="cpu", backend="openvino", home=home
    )
    yield made
    made.close()


@needs_openvino
async def test_a_classifier_scores_the_same(torchs: PairEncoder, theirs: PairEncoder) -> None:
    assert isinstance(theirs._model.bert, OpenVinoBody)
    expected = torchs.compute(PAIRS)
    assert theirs.compute(PAIRS) == pytest.approx(expected, abs=1e-4)
    assert theirs.compute(PAIRS[:1]) == pytest.approx(expected[:1], abs=1e-4)  # no padding
    assert await theirs.score(PAIRS) == pytest.approx(expected, abs=1e-4)
    assert len({round(score, 3) for score in expected}) > 10


@needs_openvino
def test_threads_do_not_share_a_request(torchs: PairEncoder, theirs: PairEncoder) -> None:
    found: list[list[float]] = []
    threads = [threading.Thread(target=lambda: found.append(theirs.compute(PAIRS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [pytest.approx(torchs.compute(PAIRS), abs=1e-4)] * 4


@needs_openvino
def test_the_layers_are_converted_once(folder: Path, home: Path, theirs: PairEncoder) -> None:
    kept = [path for path in (home / "models").iterdir() if not path.name.startswith(".")]
    assert len(kept) == 1
    before = {path.name: path.stat().st_mtime_ns for path in kept[0].iterdir()}
    again = PairEncoder(folder, order="settled_first", threads=1, device="cpu", backend="openvino", home=home)
    assert again.compute(PAIRS) == pytest.approx(theirs.compute(PAIRS), abs=1e-4)
    assert {path.name: path.stat().st_mtime_ns for path in kept[0].iterdir()} == before
    again.close()


@needs_openvino
def test_heads_score_the_same_in_each_precision(folder: Path, tmp_path: Path) -> None:
    AutoModel.from_pretrained(folder).save_pretrained(tmp_path / "base")
    tokenizer().save_pretrained(tmp_path / "base")
    torch.manual_seed(1)
    heads = pair_heads.fresh(tmp_path / "base", ("reranker", "verifier"), 8)
    config = HeadsConfig("path:base", fingerprint(tmp_path / "base"), heads.tasks, 8, 48, {})
    (tmp_path / "heads").mkdir()
    pair_heads.save(heads, config, tmp_path / "heads")
    options = {"base": tmp_path / "base", "head": "verifier", "threads": 1, "device": "cpu"}
    plain = HeadEncoder(tmp_path / "heads", dtype="float32", **options)  # type: ignore[arg-type]
    expected = plain.compute(PAIRS)
    plain.close()
    for dtype, tolerance in (("float32", 1e-4), ("bfloat16", 0.02)):
        moved = HeadEncoder(tmp_path / "heads", dtype=dtype, backend="openvino", home=tmp_path, **options)  # type: ignore[arg-type]
        found = moved.compute(PAIRS)
        assert found == pytest.approx(expected, abs=tolerance)
        coarse = torch.tensor(found).to(torch.bfloat16).float().tolist()
        assert sum(score == rounded for score, rounded in zip(found, coarse, strict=True)) < 10  # the head is exact
        other = moved.beside("reranker")
        assert other is not None
        assert other.compute(PAIRS) != pytest.approx(found, abs=tolerance / 10)
        moved.close()


def test_without_the_extra_it_says_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ModelUnusableError, match=r"openindex-answer\[cpu\].*backend to torch"):
        PairEncoder(folder, order="settled_first", threads=1, device="cpu", backend="openvino", home=tmp_path)


@needs_openvino
def test_nobody_is_told_that_it_is_loaded() -> None:
    library()
    assert sys.modules["openvino_telemetry"] is None
