"""The line that each request leaves in the log."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.responses import StreamingResponse

from serving.answer.errors import OverloadedError
from serving.answer.types import DeclineReason, RefusalCause
from serving.answer.wire import Decline, Timings, Usage
from serving.gateway.http import create_api

from .fakes import PASSAGE, FakeBackend, answered, declined, searched
from .test_http import client_of

QUESTION = "Which illness has these symptoms?"
ACCESS = "serving.gateway.access"


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG):
        yield


async def call(
    backend: FakeBackend, method: str = "POST", path: str = "/v1/answer", *, questions: bool = False, **sent: Any
) -> httpx.Response:
    told: list[str] = []
    api = create_api(
        backend,
        default_timeout_s=9.0,
        max_body_bytes=10_000,
        max_question_chars=100,
        log_questions=questions,
        identified=told.append,
    )
    if method == "POST":
        sent.setdefault("json", {"question": QUESTION})
    async with client_of(api) as client:
        response = await client.request(method, path, **sent)
    assert told == [response.headers["x-request-id"]]
    return response


def line(caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    [record] = [record for record in caplog.records if record.name == ACCESS]
    assert "\n" not in record.getMessage()
    return record


async def test_an_answers_line(caplog: pytest.LogCaptureFixture) -> None:
    answer = answered().model_copy(
        update={
            "usage": Usage(prompt_tokens=412, completion_tokens=47, verified_pairs=3),
            "timings_ms": Timings(route=0.2, retrieve=21.4, synthesize=1630.54, total=1672.3),
        }
    )
    await call(FakeBackend(answer_is=answer), headers={"x-request-id": "mine-7"})
    record = line(caplog)
    told = {
        "request_id": "mine-7",
        "method": "POST",
        "path": "/v1/answer",
        "status": 200,
        "outcome": "answered",
        "chosen": "single_pass",
        "ran": "single_pass",
        "verified": False,
        "prompt_tokens": 412,
        "completion_tokens": 47,
        "verified_pairs": 3,
        "stages_ms": {"route": 0.2, "retrieve": 21.4, "rerank": 0.0, "synthesize": 1630.5, "verify": 0.0},
        "question_chars": len(QUESTION),
    }
    assert {name: getattr(record, name) for name in told} == told
    assert record.levelno == logging.INFO
    said = record.getMessage()
    assert said.startswith("request request_id=mine-7 method=POST path=/v1/answer status=200 outcome=answered ")
    assert " synthesize_ms=1630.5 " in said
    assert QUESTION not in said


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (declined(), "declined", DeclineReason.NOT_IN_PASSAGES),
        (
            declined().model_copy(
                update={"decline": Decline(reason=DeclineReason.REFUSED, cause=RefusalCause.UNGROUNDED, message="no")}
            ),
            "declined",
            RefusalCause.UNGROUNDED,
        ),
        (searched("r1", PASSAGE), "search", None),
    ],
)
async def test_other_outcomes(caplog: pytest.LogCaptureFixture, answer: Any, outcome: str, reason: Any) -> None:
    await call(FakeBackend(answer_is=answer))
    record = line(caplog)
    assert (record.outcome, getattr(record, "reason", None)) == (outcome, reason)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "status", "code", "level"),
    [
        (OverloadedError("full", retry_after_s=1), 429, "overloaded", logging.INFO),
        (RuntimeError(QUESTION), 500, "internal", logging.WARNING),
    ],
)
async def test_an_errors_line(
    caplog: pytest.LogCaptureFixture, error: Exception, status: int, code: str, level: int
) -> None:
    await call(FakeBackend(error=error))
    record = line(caplog)
    assert (record.status, record.outcome, record.reason, record.levelno) == (status, "error", code, level)  # type: ignore[attr-defined]
    assert QUESTION not in caplog.text


async def test_what_is_refused_before_any_route_has_a_line_too(caplog: pytest.LogCaptureFixture) -> None:
    await call(FakeBackend(), json=None, content=b" " * 20_000)
    assert (line(caplog).status, line(caplog).reason) == (413, "body_too_large")  # type: ignore[attr-defined]


async def test_a_caller_who_leaves(caplog: pytest.LogCaptureFixture) -> None:
    class FakeSlowBackend(FakeBackend):
        async def answer(self, question: str, *, request_id: str, timeout_s: float) -> Any:
            await asyncio.sleep(30)

    task = asyncio.create_task(call(FakeSlowBackend()))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (line(caplog).status, line(caplog).outcome) == (499, "left")  # type: ignore[attr-defined]


async def test_a_stream_that_breaks_off_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    api = create_api(FakeBackend(), default_timeout_s=9.0, max_body_bytes=10_000, max_question_chars=100)

    async def pieces() -> Any:
        yield "one"
        raise OverloadedError("no more")

    api.add_api_route("/stream", lambda: StreamingResponse(pieces()))
    async with client_of(api) as client:
        assert (await client.get("/stream")).text == "one"
    assert (line(caplog).status, line(caplog).outcome, line(caplog).reason) == (200, "error", "overloaded")  # type: ignore[attr-defined]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_are_for_those_who_debug(caplog: pytest.LogCaptureFixture, path: str) -> None:
    await call(FakeBackend(), "GET", path)
    assert line(caplog).levelno == logging.DEBUG


@pytest.mark.parametrize(
    ("path", "sent"), [("/v1/answer", {"question": QUESTION}), ("/v1/search", {"query": QUESTION})]
)
async def test_a_question_is_logged_when_that_is_switched_on(
    caplog: pytest.LogCaptureFixture, path: str, sent: dict[str, str]
) -> None:
    await call(FakeBackend(), path=path, json=sent)
    assert QUESTION not in caplog.text
    assert not hasattr(line(caplog), "question")
    caplog.clear()
    await call(FakeBackend(), path=path, json=sent, questions=True)
    assert line(caplog).question == QUESTION  # type: ignore[attr-defined]
    assert f"question={json.dumps(QUESTION)}" in line(caplog).getMessage()


async def test_a_question_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    forged = "x\nrequest status=200 \x1b[31m\u202e\u2028\x85"
    await call(FakeBackend(), json={"question": forged}, questions=True)
    said = line(caplog).getMessage()
    assert said.isascii()
    assert said.isprintable()
    assert said.count(" status=") == 2  # ours, and theirs between quotes
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("path", ["/%0arequest%20status=200", "/%1b[31m", "/%e2%80%ae", "/a%22b", "/" + "x" * 5_000])
async def test_a_path_cannot_forge_a_line(caplog: pytest.LogCaptureFixture, path: str) -> None:
    await call(FakeBackend(), "GET", path)
    said = line(caplog).getMessage()
    assert said.isascii() or "…" in said
    assert said.isprintable()
    assert len(said) < 1_000


async def test_an_id_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    await call(FakeBackend(), "GET", "/healthz", headers={"x-request-id": 'a"status=200'})
    assert r'request_id="a\"status=200"' in line(caplog).getMessage()


async def test_a_query_string_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    await call(FakeBackend(), path="/v1/answer?question=hunter2")
    assert not [record for record in caplog.records if record.name == ACCESS and "hunter2" in record.getMessage()]
    assert line(caplog).path == "/v1/answer"  # type: ignore[attr-defined]
