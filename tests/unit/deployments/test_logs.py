"""Logs in a replica: ours where Serve's are, the request's id on each line, and no text of anybody's."""

from __future__ import annotations

import asyncio
import inspect
import io
import logging
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from ray.exceptions import RayTaskError
from ray.serve import context
from ray.serve._private.default_impl import get_request_metadata
from ray.serve._private.handle_options import DynamicHandleOptions, InitHandleOptions
from ray.serve._private.logging_utils import ServeContextFilter, ServeFormatter

from serving.answer.errors import OverloadedError
from serving.answer.escalation import EscalationMonitor
from serving.answer.types import Delta, Passage, Reason, Verdict
from serving.app import application
from serving.deployments import router as router_module
from serving.deployments.gateway import RouterBackend
from serving.deployments.logs import adopt, join_serve_log, serve_logging
from serving.deployments.router import RouterDeployment
from serving.gateway.answer_log import AnswerLog
from serving.gateway.http import create_api
from serving.settings import AnswerLogSettings, LoggingSettings, Settings, SettingsError, parse
from tests.unit.deployments.test_app import deployments
from tests.unit.deployments.test_router import FakeCounter
from tests.unit.gateway.test_http import client_of

SENTENCE = "The heliotrope valve opens at dawn."
QUESTION = "When does the heliotrope valve open?"
PASSAGE = Passage(id="p1", text=SENTENCE, title="heliotrope valve", url="https://docs.example/valve", source="docs")
TEXTS = ("heliotrope", "valve", "dawn")


@pytest.fixture
def serve_log() -> Iterator[io.StringIO]:
    """What Serve's log would say of this process, with Serve's own filter and formatter; all is put back after."""
    said, serve = io.StringIO(), logging.getLogger("ray.serve")
    handler = logging.StreamHandler(said)
    handler.setFormatter(ServeFormatter("answer_Router", "r1"))
    handler.addFilter(ServeContextFilter())
    level = serve.level
    serve.addHandler(handler)
    serve.setLevel(logging.DEBUG)
    token = context._serve_request_context.set(None)
    try:
        yield said
    finally:
        context._serve_request_context.reset(token)
        serve.removeHandler(handler)
        serve.setLevel(level)


# Where lines go


def test_our_lines_go_where_serves_go_with_the_requests_id(serve_log: io.StringIO) -> None:
    logging.getLogger("serving.x").warning("before")
    join_serve_log()
    adopt("mine-7")
    logging.getLogger("serving.deployments.router").warning("in the router")
    logging.getLogger("models.batching").info("in a model")
    logging.getLogger("vllm.engine").info("in the engine")
    lines = serve_log.getvalue().splitlines()
    assert len(lines) == 3
    assert all("mine-7" in line for line in lines)
    assert lines[0].endswith("in the router")


def test_joining_twice_is_joining_once(serve_log: io.StringIO) -> None:
    join_serve_log()
    factory = logging.getLogRecordFactory()
    join_serve_log()
    assert logging.getLogRecordFactory() is factory


def test_the_id_that_is_adopted_is_the_one_that_handles_carry(serve_log: io.StringIO) -> None:
    context._serve_request_context.set(context._RequestContext(route="/v1/answer", request_id="theirs", app_name="a"))
    adopt("mine-7")
    metadata = get_request_metadata(InitHandleOptions.create(), DynamicHandleOptions())
    assert (metadata.request_id, metadata.route, metadata.app_name) == ("mine-7", "/v1/answer", "a")


async def test_requests_side_by_side_keep_their_ids(serve_log: io.StringIO) -> None:
    async def one(name: str) -> str:
        adopt(name)
        await asyncio.sleep(0.01)
        return context._get_serve_request_context().request_id

    assert await asyncio.gather(one("a"), one("b")) == ["a", "b"]


# What lines may say


def test_a_traceback_tells_types_and_places(serve_log: io.StringIO) -> None:
    join_serve_log()
    try:
        raise RayTaskError("call", SENTENCE, ValueError(SENTENCE), ip="127.0.0.1").as_instanceof_cause()
    except ValueError:
        logging.getLogger("ray.serve").exception("Request failed.")
    try:
        raise RayTaskError("call", SENTENCE, OverloadedError("full"), ip="127.0.0.1").as_instanceof_cause()
    except OverloadedError:
        logging.getLogger("ray.serve").exception("Request failed.")
    said = serve_log.getvalue()
    assert "ValueError" in said
    assert "test_logs.py" in said
    assert not [text for text in TEXTS if text in said]
    assert '("full")' in said


class FakeHandle:
    """Every deployment behind the Router: it knows one passage, and quotes it in the error of a ``failing`` method."""

    def __init__(self, failing: str | None = None) -> None:
        self.failing = failing

    def options(self, **_: Any) -> FakeHandle:
        return self

    def __getattr__(self, name: str) -> Any:
        class Method:
            @staticmethod
            def remote(*arguments: Any, **_: Any) -> Any:
                return FakeStream(self._stream()) if name == "generate" else self._respond(name, *arguments)

        return Method

    async def _respond(self, name: str, *arguments: Any) -> Any:
        if name == self.failing:
            raise RuntimeError(f"{SENTENCE} {QUESTION}")
        results: dict[str, Any] = {
            "embed": lambda: np.zeros((1, 2), np.float32),
            "score": lambda: [0.9] * len(arguments[1]),
            "verify": lambda: [Verdict(0.99, Reason.ENTAILED)] * len(arguments[0]),
            "lexical": lambda: [PASSAGE],
            "hybrid": lambda: [PASSAGE],
            "frequencies": lambda: [1] * len(arguments[0]),
            "version": lambda: "generation-1",
            "name": lambda: "a part",
        }
        return results[name]()

    async def _stream(self) -> AsyncGenerator[Delta, None]:
        if self.failing == "generate":
            raise RuntimeError(f"{SENTENCE} {QUESTION}")
        yield Delta(f"{SENTENCE[:-1]} [1].", finish_reason="stop", prompt_tokens=9, completion_tokens=8)


class FakeRouterHandle:
    """A Router in this process, as its handle looks to the gateway."""

    def __init__(self, router: Any) -> None:
        self._router = router

    def options(self, **_: Any) -> FakeRouterHandle:
        return self

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._router, name)

        class Method:
            @staticmethod
            def remote(*arguments: Any, **named: Any) -> Any:
                response = call(*arguments, **named)
                return FakeStream(response) if inspect.isasyncgen(response) else response

        return Method


class FakeStream:
    """A generator of this process, as a streaming response."""

    def __init__(self, events: AsyncGenerator[Any, None]) -> None:
        self._events = events

    async def __anext__(self) -> Any:
        return await anext(self._events)

    def cancel(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(router_module, "TokenizerCounter", FakeCounter)
    monkeypatch.setattr(router_module.Catalog, "locate", lambda *_, **__: tmp_path)


async def ask(
    handle: FakeHandle,
    *,
    failing: str | None = None,
    questions: bool = False,
    question: str = QUESTION,
    stream: bool = False,
) -> httpx.Response:
    router = object.__new__(RouterDeployment.func_or_class)
    names = ("retriever", "embedder", "reranker", "verifier", "synthesizer")
    settings = Settings(logging=LoggingSettings(level="DEBUG", questions=questions))
    await router.__init__(settings, **dict.fromkeys(names, handle))
    await router._warming
    handle.failing = failing
    api = create_api(
        RouterBackend(FakeRouterHandle(router), AnswerLog.of(AnswerLogSettings(), Path("nowhere"))),  # type: ignore[arg-type]
        default_timeout_s=9.0,
        max_body_bytes=10_000,
        max_question_chars=100,
        log_questions=questions,
        identified=adopt,
    )
    async with client_of(api) as client:
        body = {"question": question, "stream": stream}
        return await client.post("/v1/answer", json=body, headers={"x-request-id": "mine-7"})


@pytest.mark.parametrize("stream", [False, True])
async def test_no_line_of_an_answer_holds_its_texts(
    serve_log: io.StringIO, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    with caplog.at_level(logging.DEBUG):
        response = await ask(FakeHandle(), stream=stream)
    assert f'"text":"{SENTENCE}"' in response.text
    assert ("event: answer" in response.text) is stream
    said = serve_log.getvalue() + caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    assert "outcome=answered" in said
    assert not [text for text in TEXTS if text in said]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failing", ["hybrid", "score", "generate", "verify", "version", "frequencies"])
async def test_no_line_of_a_failure_holds_its_texts(
    serve_log: io.StringIO, caplog: pytest.LogCaptureFixture, failing: str, stream: bool
) -> None:
    with caplog.at_level(logging.DEBUG):
        response = await ask(FakeHandle(), failing=failing, stream=stream)
    assert response.status_code == (200 if stream else 500)
    assert '"code":"internal"' in response.text
    if stream:  # it has found passages, perhaps, and proven nothing
        assert "event: error" in response.text
        assert "event: claim" not in response.text
    else:
        assert not [text for text in TEXTS if text in response.text]
    said = serve_log.getvalue() + caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    assert "RuntimeError" in said
    assert "mine-7" in serve_log.getvalue()
    assert not [text for text in TEXTS if text in said]


async def test_the_alarm_names_the_kind_of_cue_and_quotes_no_question(
    serve_log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EscalationMonitor, "alarmed", True)
    response = await ask(FakeHandle(), question="Are Heliotrope Valve and Dawn Valve used for water?")
    cue = response.json()["route"]["cue"]
    assert any(text in cue.lower() for text in TEXTS), cue
    assert f"the last cue was {cue.split(':')[0]}\n" in serve_log.getvalue()
    assert not [text for text in TEXTS if text in serve_log.getvalue().lower()]


async def test_the_question_alone_when_that_is_switched_on(serve_log: io.StringIO) -> None:
    await ask(FakeHandle(), questions=True)
    assert QUESTION in serve_log.getvalue()
    assert "dawn" not in serve_log.getvalue()


# By settings


def test_each_deployment_logs_as_the_settings_say() -> None:
    settings = Settings(logging=LoggingSettings(format="json", level="WARNING"))
    for name, deployment in deployments(application(settings)).items():
        config = deployment.logging_config
        assert (config["encoding"], config["log_level"]) == ("JSON", "WARNING")
        assert config["enable_access_log"] is (name != "Gateway")


def test_serve_is_told_the_same() -> None:
    config = serve_logging(LoggingSettings())
    assert (config.encoding, config.log_level, config.enable_access_log) == ("TEXT", "INFO", True)


@pytest.mark.parametrize(
    ("key", "value"), [("format", "xml"), ("level", "LOUD"), ("questions", "maybe"), ("colour", 1)]
)
def test_settings_that_are_none(key: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"logging.{key}"):
        parse({"logging": {key: value}})


def test_logging_shapes_no_answer() -> None:
    assert Settings(logging=LoggingSettings(level="DEBUG")).version == Settings().version
