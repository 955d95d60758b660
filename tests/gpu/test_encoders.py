"""Encoders on a real GPU: the scores of the CPU, whatever goes on beside a pass."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch

from models.catalog import Catalog
from models.encoder import PairEncoder
from models.head_encoder import HeadEncoder
from models.transfer import transfer
from tests.unit.models.tiny_checkpoints import WORDS, pair_classifier

pytestmark = pytest.mark.gpu

PAIRS = [(" ".join(WORDS[number % 7 :] * (1 + number % 5)), f"the {WORDS[number % 12]} runs") for number in range(300)]


async def test_a_classifier_scores_as_on_a_cpu(tmp_path: Path) -> None:
    folder = pair_classifier(tmp_path, labels={0: "no", 1: "yes"})
    here, there = (
        PairEncoder(folder, order="settled_first", threads=1, batch_tokens=512, device=device)
        for device in ("cpu", "cuda")
    )
    await there.warm_up()
    expected = here.compute(PAIRS)
    assert await there.score(PAIRS) == pytest.approx(expected, abs=1e-3)
    # Passes of many callers, one after the other without a pause: no copy may overtake what reads it.
    for _ in range(5):
        found = await asyncio.gather(*(there.score(PAIRS[at : at + 30]) for at in range(0, 300, 30)))
        assert [score for scores in found for score in scores] == pytest.approx(expected, abs=1e-3)
    here.close()
    there.close()


@pytest.mark.weights
async def test_the_shipped_heads_score_as_on_a_cpu(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    folder = catalog.locate("shipped:encoder")
    base = catalog.base_of(folder)
    assert base is not None
    here, there = (
        HeadEncoder(folder, base=base, head="reranker", threads=2, device=device, dtype="float32")
        for device in ("cpu", "cuda")
    )
    assert await there.score(PAIRS[:100]) == pytest.approx(here.compute(PAIRS[:100]), abs=1e-3)
    here.close()
    there.close()


def test_what_is_copied_is_what_is_read_and_what_comes_back() -> None:
    device = torch.device("cuda")
    moved = transfer(device)
    for size in (1, 1000, 100_000):
        given = torch.arange(size)
        taken = moved.stage({"given": given})()["given"]
        assert taken.device.type == "cuda"
        assert moved.fetch((taken * 2).float())() == (given * 2).float().tolist()
