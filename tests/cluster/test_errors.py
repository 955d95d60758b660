"""Errors and logs of the running server: through Serve's proxy, the gateway, and every deployment behind it."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import httpx
import pytest
import ray
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from serving.cli.up import Server
from tests.unit.gateway.test_schemathesis import CHECKS, POSTS

pytestmark = pytest.mark.cluster

QUESTION = "What does itertools.chain do?"


@pytest.mark.parametrize("operation", POSTS)
@pytest.mark.parametrize("mode", GenerationMode)
def test_generated_calls_find_no_fault_and_nothing_undocumented(
    server: Server, operation: str, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations = {found.ok().definition.raw["operationId"]: found.ok() for found in schema.get_all_operations()}
    few = 4 if operation == "answer" and mode is GenerationMode.POSITIVE else 25

    @settings(max_examples=few, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operations[operation].as_strategy(generation_mode=mode))
    def call(case: schemathesis.Case) -> None:
        case.validate_response(case.call(base_url=server.url, timeout=120), checks=CHECKS)

    call()


@pytest.mark.parametrize("given_id", ["mine-7", "two words", "caf\xe9", "x" * 200, None])
def test_one_request_id_for_all(server: Server, given_id: str | None) -> None:
    headers = {"x-request-id": given_id.encode("latin-1")} if given_id else {}
    response = httpx.get(f"{server.url}/nowhere", headers=headers)  # type: ignore[arg-type]
    [found] = response.headers.get_list("x-request-id")
    assert response.json()["error"]["request_id"] == found
    assert (found == given_id) is (given_id == "mine-7")


RAW = {
    b"chunked over the limit": (
        b"POST /v1/answer HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        + b"%x\r\n" % 1_100_000
        + b" " * 1_100_000
        + b"\r\n0\r\n\r\n",
        b" 413 ",
    ),
    b"declared over the limit": (b"POST /v1/answer HTTP/1.1\r\nhost: a\r\ncontent-length: 9999999\r\n\r\n", b" 413 "),
    b"negative length": (b"POST /v1/answer HTTP/1.1\r\nhost: a\r\ncontent-length: -5\r\n\r\n", b" 400 "),
    b"head": (b"HEAD /v1/answer HTTP/1.1\r\nhost: a\r\n\r\n", b" 405 "),
    b"options": (b"OPTIONS /v1/answer HTTP/1.1\r\nhost: a\r\n\r\n", b" 405 "),
    b"bad session": (b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-session-id: \xff\r\n\r\n", b" 200 "),
}


@pytest.mark.parametrize(("sent", "status"), RAW.values(), ids=[name.decode() for name in RAW])
def test_hostile_messages(server: Server, sent: bytes, status: bytes) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(sent)
        got = connection.recv(65_536)
    assert status in got.split(b"\r\n")[0]


def test_the_id_is_in_the_lines_of_every_deployment_and_the_question_in_none(server: Server) -> None:
    request_id = f"traced-{time.time_ns()}"
    response = httpx.post(
        f"{server.url}/v1/answer", json={"question": QUESTION}, headers={"x-request-id": request_id}, timeout=120
    )
    assert response.json()["outcome"] == "answered"
    folder = Path(ray._private.worker._global_node.get_logs_dir_path())
    wanted = {"Gateway", "Router", "Retriever", "Embedder", "Reranker", "Verifier", "Synthesizer"}
    deadline, found = time.monotonic() + 20, set[str]()
    while found < wanted and time.monotonic() < deadline:
        lines = {path: path.read_text(errors="replace") for path in (folder / "serve").glob("*.log")}
        found = {
            name for name in wanted for path, text in lines.items() if f"_{name}_" in path.name and request_id in text
        }
        time.sleep(0.2)
    assert found == wanted
    [line] = [
        line for text in lines.values() for line in text.splitlines() if f"request request_id={request_id} " in line
    ]
    assert "outcome=answered chosen=single_pass ran=single_pass verified=" in line
    texts = [QUESTION, response.json()["text"], response.json()["passages"][0]["text"][:80]]
    for path in folder.rglob("*"):
        if path.is_file():
            said = path.read_text(errors="replace")
            assert not [text for text in texts if text in said], path
