"""Streamed answers over scripted backends: what is sent when, who waits for whom, what becomes of one who leaves."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent
from starlette.requests import Request
from starlette.types import Message

from serving.answer.errors import AnswerError, DeadlineExceededError, OverloadedError, UnavailableError
from serving.answer.events import Event, Finished
from serving.answer.wire import Answer
from serving.gateway import examples
from serving.gateway.access import Access, access_of
from serving.gateway.streaming import KEEP_ALIVE_S, EventStream

from .fakes import FakeBackend, answered, declined, events_of
from .test_access import ACCESS, line
from .test_http import QUESTION, api_over, client_of, error_of
from .test_stream_events import read

BODY = {**QUESTION, "stream": True}


class FakeStreamingBackend(FakeBackend):
    """Streams scripted events; an exception among them is raised, and at a number it waits until it is let on.

    ``yielded`` is how many events were taken, ``closed`` whether the generator was closed before its end.
    """

    def script(self, *steps: Event | BaseException | int) -> FakeStreamingBackend:
        self.steps = steps
        self.yielded = 0
        self.closed = self.ended = False
        self.gates = [asyncio.Event() for step in steps if isinstance(step, int)]
        return self

    async def events(self, question: str, *, request_id: str, timeout_s: float) -> AsyncGenerator[Event, None]:
        self.asked.append((question, request_id, timeout_s))
        try:
            for step in self.steps:
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, int):
                    await self.gates[step].wait()
                    continue
                self.yielded += 1
                yield step
            self.ended = True
        finally:
            self.closed = not self.ended


EVENTS = events_of(answered())


async def asked(backend: FakeBackend, body: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
    async with client_of(api_over(backend)) as client, asyncio.timeout(30):
        return await client.post("/v1/answer", json=body or BODY, headers=headers)


def names(events: list[ServerSentEvent]) -> list[str]:
    return [event.event for event in events]


# What is sent


async def test_a_stream_is_events_in_order() -> None:
    backend = FakeStreamingBackend().script(*EVENTS)
    response = await asked(backend, {**BODY, "timeout_s": 7}, **{"x-request-id": "mine-7"})
    assert response.status_code == 200
    assert response.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers.get_list("x-request-id") == ["mine-7"]
    assert "content-length" not in response.headers
    events = read(response.content)
    assert names(events) == ["route", "passages", "claim", "dropped", "answer"]
    assert [event.id for event in events] == [f"mine-7:{number}" for number in range(1, 6)]
    assert json.loads(events[0].data) == {"chosen": "single_pass", "ran": "single_pass", "cue": "question word"}
    assert json.loads(events[1].data)["passages"][0]["id"] == "p1"
    claim = json.loads(events[2].data)
    assert claim["citations"] == [{"chunk": 0, "score": 0.93, "marker": 1}]
    assert json.loads(events[3].data) == {"reason": "uncited", "count": 2}
    assert Answer.model_validate_json(events[4].data) == answered()
    assert backend.asked == [(QUESTION["question"], "mine-7", 7.0)]
    assert backend.ended


@pytest.mark.parametrize("stream", [False, None])
async def test_without_asking_for_a_stream_there_is_none(stream: bool | None) -> None:
    body = QUESTION if stream is None else {**QUESTION, "stream": stream}
    response = await asked(FakeBackend(), body)
    assert response.headers["content-type"] == "application/json"
    assert response.json()["outcome"] == "answered"


@pytest.mark.parametrize(
    "error", [OverloadedError("full", retry_after_s=1.2), UnavailableError("not warm"), RuntimeError("hunter2")]
)
async def test_an_error_before_the_first_event_is_a_response(error: Exception) -> None:
    response = await asked(FakeStreamingBackend().script(error))
    known = isinstance(error, AnswerError)
    status, code = (error.status, error.code) if isinstance(error, AnswerError) else (500, "internal")
    error_of(response, status, code, retryable=known)
    assert response.headers.get("retry-after") == ("2" if code == "overloaded" else None)
    assert "hunter2" not in response.text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DeadlineExceededError("the deadline passed"), "deadline_exceeded"),
        (RuntimeError("hunter2"), "internal"),
        (asyncio.CancelledError(), "unavailable"),  # a replica that is being stopped
    ],
)
async def test_a_later_error_is_the_last_event(
    error: BaseException, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        response = await asked(FakeStreamingBackend().script(*EVENTS[:2], error, *EVENTS[2:]))
    assert response.status_code == 200
    events = read(response.content)
    assert names(events) == ["route", "passages", "error"]
    told = json.loads(events[-1].data)["error"]
    assert (told["code"], told["request_id"]) == (code, response.headers["x-request-id"])
    assert "hunter2" not in response.text + caplog.text
    assert (line(caplog).status, line(caplog).outcome, line(caplog).reason) == (200, "error", code)  # type: ignore[attr-defined]


@pytest.mark.parametrize("answer", [answered(), declined()])
async def test_the_access_line_has_the_outcome(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await asked(FakeStreamingBackend().script(*events_of(answer)))
    assert (line(caplog).status, line(caplog).outcome) == (200, answer.outcome.value)  # type: ignore[attr-defined]
    assert line(caplog).question_chars == len(QUESTION["question"])  # type: ignore[attr-defined]


def test_the_example_is_a_stream() -> None:
    events = read(examples.streamed().encode())
    assert names(events) == ["route", "passages", "claim", "answer"]
    assert Answer.model_validate_json(events[-1].data) == examples.answered()


# Who waits for whom


class FakeCaller:
    """One end of a connection: takes what is sent once it is let, and may leave."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.takes = asyncio.Event()
        self.takes.set()
        self.leaves = asyncio.Event()

    async def send(self, message: Message) -> None:
        await self.takes.wait()
        self.messages.append(message)

    async def receive(self) -> Message:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages).decode()


class FakeSleep:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._passes = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._passes.wait()

    async def passes(self) -> None:
        self._passes.set()
        self._passes = asyncio.Event()
        await settled()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def streaming(
    backend: FakeStreamingBackend, caller: FakeCaller, sleep: Any = asyncio.sleep
) -> tuple[asyncio.Task[None], Access]:
    request = Request({"type": "http", "method": "POST", "path": "/v1/answer", "headers": [], "state": {}})
    stream = EventStream(backend.events("x", request_id="r1", timeout_s=5), request, sleep=sleep)
    return asyncio.create_task(stream(request.scope, caller.receive, caller.send)), access_of(request)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_an_event_is_sent_when_it_comes_and_not_later() -> None:
    caller, backend = FakeCaller(), FakeStreamingBackend().script(*EVENTS[:3], 0, *EVENTS[3:])
    task, _ = streaming(backend, caller)
    await until(lambda: "event: claim" in caller.text)
    assert "event: answer" not in caller.text
    backend.gates[0].set()
    await task
    assert "event: answer" in caller.text
    assert caller.messages[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


async def test_nothing_is_sent_before_the_first_event() -> None:
    caller, backend = FakeCaller(), FakeStreamingBackend().script(0, *EVENTS)
    task, _ = streaming(backend, caller)
    await settled()
    assert caller.messages == []
    backend.gates[0].set()
    await task


async def test_a_slow_caller_does_not_hold_up_the_engine() -> None:
    caller, backend = FakeCaller(), FakeStreamingBackend().script(*EVENTS)
    caller.takes.clear()
    task, _ = streaming(backend, caller)
    await until(lambda: backend.ended)
    assert caller.messages == []
    caller.takes.set()
    await task
    assert caller.text.count("event: ") == len(EVENTS)


async def test_silence_is_broken_by_comments() -> None:
    caller, sleep = FakeCaller(), FakeSleep()
    backend = FakeStreamingBackend().script(EVENTS[0], 0, EVENTS[-1])
    task, _ = streaming(backend, caller, sleep)
    await settled()
    assert "keep-alive" not in caller.text
    for count in (1, 2, 3):
        await sleep.passes()
        assert caller.text.count(": keep-alive\n\n") == count
    assert set(sleep.asked) == {KEEP_ALIVE_S}
    backend.gates[0].set()
    await task
    assert names(read(caller.text.encode())) == ["route", "answer"]
    assert caller.text.count(": keep-alive") == 3


@pytest.mark.parametrize("before", [0, 2])
async def test_one_who_leaves_closes_the_events(before: int) -> None:
    caller, backend = FakeCaller(), FakeStreamingBackend().script(*EVENTS[:before], 0, *EVENTS[before:])
    task, access = streaming(backend, caller)
    await settled()
    assert not task.done()
    caller.leaves.set()
    await asyncio.wait_for(task, 10)
    assert backend.closed
    assert access.fields(1.0, questions=False)["status"] == 499
    assert access.fields(1.0, questions=False)["outcome"] == "left"


async def test_one_who_leaves_while_he_takes_nothing_closes_the_events_too() -> None:
    caller, backend = FakeCaller(), FakeStreamingBackend().script(EVENTS[0], 0)
    caller.takes.clear()
    task, access = streaming(backend, caller)
    await settled()
    caller.leaves.set()
    await asyncio.wait_for(task, 10)
    assert backend.closed
    assert access.left


async def test_a_request_that_is_cancelled_closes_the_events() -> None:
    caller, backend = FakeCaller(), FakeStreamingBackend().script(EVENTS[0], 0)
    task, access = streaming(backend, caller)
    await settled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.closed
    assert access.left


async def test_one_who_leaves_with_the_answer_has_not_left_early() -> None:
    caller, backend = FakeCaller(), FakeStreamingBackend().script(*EVENTS, 0)
    task, access = streaming(backend, caller)
    await until(lambda: "event: answer" in caller.text)
    caller.leaves.set()
    await asyncio.wait_for(task, 10)
    assert not access.left
    assert access.outcome == "answered"


async def test_one_who_leaves_has_a_line_with_status_499(caplog: pytest.LogCaptureFixture) -> None:
    backend, caller = FakeStreamingBackend().script(EVENTS[0], 0), FakeCaller()
    body = json.dumps(BODY).encode()
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        return next(sent, None) or await caller.receive()

    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/answer", "query_string": b"", "headers": headers}
    with caplog.at_level(logging.INFO):
        task = asyncio.create_task(api_over(backend)(scope, receive, caller.send))
        await until(lambda: "event: route" in caller.text)
        caller.leaves.set()
        await asyncio.wait_for(task, 10)
    assert backend.closed
    assert (line(caplog).status, line(caplog).outcome) == (499, "left")  # type: ignore[attr-defined]
    assert [record.name for record in caplog.records if record.name.startswith("serving")] == [ACCESS]


def test_the_last_event_is_the_answer() -> None:
    assert isinstance(EVENTS[-1], Finished)
