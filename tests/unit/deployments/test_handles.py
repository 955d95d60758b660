"""Seams over handles: errors come back typed, deadlines are kept, and what is no longer wanted is cancelled."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    GetTimeoutError,
    RayActorError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.serve._private.common import DeploymentID
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    ReplicaUnavailableError,
    RequestCancelledError,
)

from serving.answer.errors import AnswerError, DeadlineExceededError, OverloadedError, UnavailableError
from serving.answer.seams import Generation
from serving.answer.types import Deadline, Delta, Message
from serving.answer.wire import Answer
from serving.deployments.base import deadline_in
from serving.deployments.gateway import RouterBackend
from serving.deployments.handles import RemoteRetriever, RemoteSynthesizer, call, translate
from serving.deployments.handles import stream as stream_of
from serving.gateway.answer_log import AnswerLog
from serving.settings import AnswerLogSettings
from tests.unit.answer.error_kinds import kinds
from tests.unit.gateway.fakes import PASSAGE, answered, events_of


def remote(error: Exception) -> RayTaskError:
    """The error as Ray raises it in the process that called: pickled, wrapped, and of both classes."""
    wrapped = RayTaskError("call", "Traceback (most recent call last): secret.py", error, ip="127.0.0.1")
    arrived: RayTaskError = pickle.loads(pickle.dumps(wrapped)).as_instanceof_cause()
    return arrived


# Errors


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_a_typed_error_crosses_processes_as_it_is(kind: type[AnswerError]) -> None:
    raised = kind("say this", retry_after_s=2.5)
    for arrived in (pickle.loads(pickle.dumps(raised)), translate(remote(raised), "verifier"), translate(raised, "x")):
        assert type(arrived) is kind
        assert (arrived.message, str(arrived), arrived.retry_after_s) == ("say this", "say this", 2.5)
        assert (arrived.code, arrived.status, arrived.retryable) == (kind.code, kind.status, kind.retryable)


def test_an_error_that_came_through_two_processes_is_still_typed() -> None:
    twice = RayTaskError("outer", "trace", remote(OverloadedError("full", retry_after_s=3.0)), ip="127.0.0.1")
    arrived = translate(twice, "router")
    assert type(arrived) is OverloadedError  # and no longer Ray's class beside ours
    assert (arrived.message, arrived.retry_after_s) == ("full", 3.0)


BACK_PRESSURE = BackPressureError(num_queued_requests=64, max_queued_requests=64)


@pytest.mark.parametrize("error", [BACK_PRESSURE, remote(BACK_PRESSURE)], ids=["here", "there"])
def test_a_full_queue_is_429(error: Exception) -> None:
    arrived = translate(error, "reranker")
    assert isinstance(arrived, OverloadedError)
    assert (arrived.status, arrived.retryable) == (429, True)
    assert arrived.retry_after_s
    assert "reranker" in arrived.message


BROKEN = [
    RayActorError(),
    ActorDiedError(),
    ActorUnavailableError("gone", b"0" * 16),
    WorkerCrashedError(),
    GetTimeoutError("lost"),
    DeploymentUnavailableError(DeploymentID(name="Verifier")),
    ReplicaUnavailableError("verifier#1"),
    remote(ValueError("secret")),
    remote(TimeoutError("secret")),
    remote(RuntimeError("secret")),
]


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_what_is_down_is_503_and_shows_nothing_of_itself(error: Exception) -> None:
    arrived = translate(error, "verifier")
    assert type(arrived) is UnavailableError
    assert (arrived.status, arrived.retryable) == (503, True)
    assert arrived.message == "the verifier is not available"


@pytest.mark.parametrize("error", [RequestCancelledError("r1"), TaskCancelledError()])
def test_a_cancelled_call_is_cancellation(error: Exception) -> None:
    assert isinstance(translate(error, "verifier"), asyncio.CancelledError)


def test_a_fault_of_our_own_stays_what_it_is() -> None:
    error = ValueError("a bug here, not over there")
    assert translate(error, "verifier") is error


# Calls


class FakeResponse:
    """A handle's response: gives a value or raises, after a while, and knows whether it was cancelled."""

    def __init__(self, outcome: Any = None, *, after_s: float = 0.0) -> None:
        self._outcome = outcome
        self._after_s = after_s
        self.cancelled = False

    def __await__(self) -> Any:
        return self._get().__await__()

    async def _get(self) -> Any:
        try:
            await asyncio.sleep(self._after_s)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


async def test_a_call_gives_its_value() -> None:
    assert await call(FakeResponse(5), "verifier", deadline_in(5)) == 5


@pytest.mark.parametrize("seconds", [0.0, 0.02])
async def test_a_call_past_its_deadline_is_cancelled(seconds: float) -> None:
    response = FakeResponse(after_s=30)
    with pytest.raises(DeadlineExceededError, match="waiting for the verifier"):
        await call(response, "verifier", deadline_in(seconds))
    assert response.cancelled or seconds == 0.0  # with no time at all it is not even waited for


async def test_a_call_whose_caller_leaves_is_cancelled() -> None:
    response = FakeResponse(after_s=30)
    task = asyncio.create_task(call(response, "verifier", deadline_in(60)))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert response.cancelled


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
async def test_a_call_to_what_is_down_is_no_passed_deadline(error: Exception) -> None:
    with pytest.raises(UnavailableError, match="the verifier is not available"):
        await call(FakeResponse(error), "verifier", deadline_in(60))


async def test_a_call_raises_what_was_raised_there() -> None:
    with pytest.raises(OverloadedError, match="full"):
        await call(FakeResponse(remote(OverloadedError("full"))), "verifier", deadline_in(60))
    with pytest.raises(asyncio.CancelledError):
        await call(FakeResponse(RequestCancelledError("r1")), "verifier", deadline_in(60))


class FakeMethod:
    def __init__(self, respond: Callable[..., Any]) -> None:
        self.remote = respond


class FakeHandle:
    """A deployment's handle with scripted methods; ``chosen`` is what was asked of ``options``."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        self._methods = methods
        self.chosen: dict[str, Any] = {}

    def options(self, **chosen: Any) -> FakeHandle:
        self.chosen.update(chosen)
        return self

    def __getattr__(self, name: str) -> FakeMethod:
        return FakeMethod(self._methods[name])


async def test_deadlines_cross_as_seconds_that_remain() -> None:
    sent: list[float] = []

    def lexical(_query: str, _limit: int, *, timeout_s: float) -> FakeResponse:
        sent.append(timeout_s)
        return FakeResponse([PASSAGE])

    retriever = RemoteRetriever(FakeHandle(lexical=lexical))  # type: ignore[arg-type]
    assert await retriever.lexical("chain", 1, deadline=Deadline(107.5, lambda: 100.0)) == [PASSAGE]
    assert sent == [7.5]


async def test_the_index_version_is_asked_with_typed_errors() -> None:
    handle = FakeHandle(version=lambda: FakeResponse(remote(RuntimeError("secret"))))
    with pytest.raises(UnavailableError, match="the retriever is not available"):
        await RemoteRetriever(handle).version()  # type: ignore[arg-type]


# Streams

REQUEST = Generation((Message("user", "x"),), "r1", max_tokens=4)


class FakeStream:
    """A streaming response: scripted items (a text is a delta), then an error, the end, or nothing for ever."""

    def __init__(self, *items: Any, then: BaseException | None = None, stall: bool = False) -> None:
        self._items = list(items)
        self._then = then
        self._stall = stall
        self.cancelled = False

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._items:
            item = self._items.pop(0)
            return Delta(item) if isinstance(item, str) else item
        if self._stall:
            await asyncio.sleep(30)
        raise self._then or StopAsyncIteration

    def cancel(self) -> None:
        self.cancelled = True


def synthesizer_over(stream: FakeStream) -> tuple[RemoteSynthesizer, FakeHandle]:
    handle = FakeHandle(generate=lambda _request, *, timeout_s: stream if timeout_s > 0 else None)
    return RemoteSynthesizer(handle), handle  # type: ignore[arg-type]


async def test_a_reply_is_streamed_to_its_end() -> None:
    stream = FakeStream("Chain ", "makes.")
    synthesizer, handle = synthesizer_over(stream)
    assert handle.chosen == {"stream": True}
    assert [delta.text async for delta in synthesizer.generate(REQUEST, deadline=deadline_in(5))] == [
        "Chain ",
        "makes.",
    ]
    assert not stream.cancelled


async def test_closing_a_reply_cancels_its_generation() -> None:
    stream = FakeStream("one", "two", "three")
    synthesizer, _ = synthesizer_over(stream)
    deltas = synthesizer.generate(REQUEST, deadline=deadline_in(5))
    assert (await anext(deltas)).text == "one"
    assert not stream.cancelled
    await deltas.aclose()
    assert stream.cancelled


async def test_cancelling_a_reader_cancels_its_generation() -> None:
    stream = FakeStream("one", stall=True)
    synthesizer, _ = synthesizer_over(stream)

    async def read() -> None:
        async for _ in synthesizer.generate(REQUEST, deadline=deadline_in(5)):
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stream.cancelled


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (remote(DeadlineExceededError("late")), DeadlineExceededError),
        (ActorDiedError(), UnavailableError),
        (BACK_PRESSURE, OverloadedError),
        (RequestCancelledError("r1"), asyncio.CancelledError),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
async def test_a_reply_that_breaks_off_is_a_typed_error(error: Exception, kind: type[BaseException]) -> None:
    synthesizer, _ = synthesizer_over(FakeStream("one", then=error))
    deltas = synthesizer.generate(REQUEST, deadline=deadline_in(5))
    assert (await anext(deltas)).text == "one"
    with pytest.raises(kind):
        await anext(deltas)


# The gateway's side


def backend_over(**methods: Callable[..., Any]) -> RouterBackend:
    return RouterBackend(FakeHandle(**methods), silent())  # type: ignore[arg-type]


def silent() -> AnswerLog:
    return AnswerLog.of(AnswerLogSettings(), Path("nowhere"))


async def test_the_gateway_streams_from_the_router() -> None:
    events, seen = events_of(answered()), list[Any]()

    def ask(question: str, **rest: Any) -> FakeStream:
        seen.append((question, rest))
        return FakeStream(*events)

    handle = FakeHandle(events=ask)
    got = [event async for event in RouterBackend(handle, silent()).events("Why?", request_id="r9", timeout_s=4.0)]  # type: ignore[arg-type]
    assert got == events
    assert handle.chosen == {"stream": True}
    assert seen == [("Why?", {"request_id": "r9", "timeout_s": 4.0})]


async def test_closing_the_gateways_stream_cancels_the_routers() -> None:
    response = FakeStream(*events_of(answered()))
    events = backend_over(events=lambda *_, **__: response).events("Why?", request_id="r9", timeout_s=4.0)
    await anext(events)
    assert not response.cancelled
    await events.aclose()
    assert response.cancelled


async def test_a_router_that_breaks_off_is_a_typed_error_after_what_it_said() -> None:
    events = events_of(answered())[:2]
    response = FakeStream(*events, then=remote(DeadlineExceededError("late")))
    stream = backend_over(events=lambda *_, **__: response).events("Why?", request_id="r9", timeout_s=4.0)
    assert [await anext(stream), await anext(stream)] == events
    with pytest.raises(DeadlineExceededError, match="late"):
        await anext(stream)


async def test_the_gateway_waits_for_a_silent_router_no_longer_than_its_deadline() -> None:
    response = FakeStream(*events_of(answered())[:1], stall=True)
    with pytest.raises(DeadlineExceededError, match="waiting for the router"):
        async for _ in stream_of(response, "router", deadline_in(0.05)):
            pass
    assert response.cancelled


async def test_the_gateway_asks_the_router() -> None:
    seen: list[Any] = []

    def ask(question: str, **rest: Any) -> FakeResponse:
        seen.append((question, rest))
        return FakeResponse(answered())

    backend = backend_over(answer=ask, search=lambda *_, timeout_s: FakeResponse([PASSAGE] if timeout_s else []))
    got: Answer = await backend.answer("Why?", request_id="r9", timeout_s=4.0)
    assert got == answered()
    assert seen == [("Why?", {"request_id": "r9", "timeout_s": 4.0})]
    assert await backend.search("x", 1, timeout_s=4.0) == [PASSAGE]


@pytest.mark.parametrize(
    "error",
    [ActorDiedError(), BACK_PRESSURE, DeadlineExceededError("slow"), remote(RuntimeError("secret"))],
    ids=lambda error: type(error).__name__,
)
async def test_a_router_that_cannot_say_is_not_ready(error: Exception) -> None:
    assert await backend_over(ready=lambda: FakeResponse(error)).ready() == {"router": False}


async def test_readiness_is_the_routers() -> None:
    assert await backend_over(ready=lambda: FakeResponse({"a": True})).ready() == {"a": True}
