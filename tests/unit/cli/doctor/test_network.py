"""Ports, servers and variables, made up."""

from __future__ import annotations

from typing import Any

import pytest

from serving.cli.client import ServerError
from serving.cli.doctor import environment, network
from serving.cli.doctor.findings import Status, Subject
from serving.cli.doctor.machine import Reply
from serving.settings import Settings
from tests.unit.cli.doctor.fakes import FakeMachine, found

OK, WARNING, PROBLEM = Status.OK, Status.WARNING, Status.PROBLEM
URL = "http://127.0.0.1:8000"


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
    findings = served(
        readyz=slow, v1__search=slow, openapi=Reply(200, {"info": {"title": network.API_TITLE, "version": "9"}})
    )
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
