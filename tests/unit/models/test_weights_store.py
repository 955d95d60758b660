"""The store of weights: one folder a content, whole or not at all, and never changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import models.weights
from models.catalog import Catalog
from models.errors import ModelNotFoundError, ModelUnusableError
from models.weights import WeightsStore, content_hash, name_of, reference_to


def silent(_message: str) -> None:
    pass


def adapter(folder: Path, value: float = 0.5) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 2}))
    save_file({"weight": np.full((4, 4), value, dtype=np.float32)}, folder / "adapter_model.safetensors")
    return folder


def test_what_is_added_is_located_by_its_hash(tmp_path: Path) -> None:
    folder, store = adapter(tmp_path / "run" / "weights"), WeightsStore(tmp_path / "home")
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocab.json").write_text("{}")
    stored = store.add("citation", folder, progress=silent)
    assert stored.hash == content_hash(folder) == content_hash(stored.folder)
    assert stored.folder == tmp_path / "home" / "weights" / "citation" / stored.hash
    assert stored.reference == reference_to("citation", stored.hash) == f"weights:citation@{stored.hash}"
    assert Catalog(tmp_path / "home").locate(stored.reference) == stored.folder
    assert Catalog(tmp_path / "home").find(stored.reference) == stored.folder
    assert name_of(stored.reference, stored.folder) == f"citation@{stored.hash}"
    shutil.rmtree(folder)
    assert (stored.folder / "tokenizer" / "vocab.json").read_text() == "{}"
    assert not (stored.folder / "adapter_model.safetensors").stat().st_mode & 0o222


def test_adding_twice_copies_once_and_others_stand_beside(tmp_path: Path) -> None:
    store, told = WeightsStore(tmp_path / "home"), list[str]()
    first = store.add("citation", adapter(tmp_path / "a"), progress=told.append)
    again = store.add("citation", adapter(tmp_path / "copy"), progress=told.append)
    other = store.add("citation", adapter(tmp_path / "b", 0.25), progress=told.append)
    elsewhere = store.add("verifier", adapter(tmp_path / "a"), progress=told.append)
    assert first == again
    assert len(told) == 3
    assert {one.hash for one in store.of("citation")} == {first.hash, other.hash}
    assert {one.reference for one in store} == {first.reference, other.reference, elsewhere.reference}


def test_a_card_and_measurements_are_kept_but_are_no_part_of_what_weights_are(tmp_path: Path) -> None:
    bare, told = adapter(tmp_path / "bare"), adapter(tmp_path / "told")
    (told / "README.md").write_text("# A card")
    (told / "metrics.json").write_text("{}")
    assert content_hash(bare) == content_hash(told)
    stored = WeightsStore(tmp_path / "home").add("citation", told, progress=silent)
    assert (stored.folder / "README.md").read_text() == "# A card"


@given(at=st.integers(0, 3), data=st.binary(min_size=1, max_size=64), byte=st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_any_byte_changes_the_hash(tmp_path_factory: pytest.TempPathFactory, at: int, data: bytes, byte: int) -> None:
    folder = tmp_path_factory.mktemp("content")
    (folder / "model.safetensors").write_bytes(data)
    before = content_hash(folder)
    changed = bytearray(data)
    changed[at % len(data)] = byte
    (folder / "model.safetensors").write_bytes(changed)
    assert (content_hash(folder) == before) == (bytes(changed) == data)


def test_a_name_is_part_of_the_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.safetensors").write_bytes(b"x")
    assert content_hash(tmp_path / "a") != content_hash(tmp_path / "b")


def test_a_hash_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    store = WeightsStore(tmp_path / "home")
    with pytest.raises(ModelNotFoundError, match="answer weights add"):
        store.get("citation", "0" * 12)
    stored = store.add("citation", adapter(tmp_path / "a"), progress=silent)
    with pytest.raises(ModelNotFoundError, match=stored.hash):
        Catalog(tmp_path / "home").locate("weights:citation@000000000000")


@pytest.mark.parametrize("name", ["weights:", "weights:citation", "weights:../models@x", "weights:citation@../../x"])
def test_a_reference_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelNotFoundError):
        Catalog(tmp_path).locate(name)


@pytest.mark.parametrize("job", ["", "..", "a/b", "Citation"])
def test_a_job_has_a_plain_name(tmp_path: Path, job: str) -> None:
    with pytest.raises(ModelUnusableError, match="no name"):
        WeightsStore(tmp_path / "home").add(job, adapter(tmp_path / "a"), progress=silent)


def test_weights_that_change_while_they_are_copied_are_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = adapter(tmp_path / "a"), WeightsStore(tmp_path / "home")
    copy = shutil.copyfile

    def copy_after_a_change(source: Path, target: Path) -> None:
        adapter(folder, 0.75)
        copy(source, target)

    monkeypatch.setattr(models.weights.shutil, "copyfile", copy_after_a_change)
    with pytest.raises(ModelUnusableError, match="was changed"):
        store.add("citation", folder, progress=silent)
    assert store.of("citation") == []
