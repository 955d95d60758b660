"""``answer weights``: what the words for weights stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.catalog import ADAPTERS, Catalog
from models.errors import ModelNotFoundError
from models.weights import WeightsStore
from serving.cli.weights import _reference
from serving.deployments.rollout import PLACES


def reference(home: Path, job: str, which: str) -> str | None:
    return _reference(job, which, WeightsStore(home), Catalog(home))


@pytest.mark.parametrize("job", ["verifier", "reranker"])
def test_shipped_are_the_weights_that_come_with_the_product(tmp_path: Path, job: str) -> None:
    assert reference(tmp_path, job, "shipped") == "shipped:encoder"
    assert (ADAPTERS / PLACES[job].shipped / "model.safetensors").is_file()


def test_base_is_the_part_without_weights_of_ours(tmp_path: Path) -> None:
    assert reference(tmp_path, "citation", "base") is None


def test_a_hash_is_looked_up(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "model.safetensors").write_bytes(b"x")
    stored = WeightsStore(tmp_path / "home").add("verifier", made, progress=lambda _: None)
    assert reference(tmp_path / "home", "verifier", stored.hash) == f"weights:verifier@{stored.hash}"
    with pytest.raises(ModelNotFoundError, match=stored.hash):
        reference(tmp_path / "home", "verifier", "0123456789ab")
