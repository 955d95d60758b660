"""The synthesizer over an endpoint, against a scripted one over real HTTP: streams, errors, second attempts, ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, Said
from pydantic import SecretStr

from models.endpoint import Endpoint, read_key
from models.errors import EndpointError, EndpointKeyError, GrammarError, InputTooLongError, ModelNotFoundError
from models.remote_synthesizer import EndpointSynthesizer
from models.tokens import EstimatingCounter
from serving.answer.errors import AnswerError, OverloadedError, UnavailableError
from serving.answer.seams import Generation
from serving.answer.structured import schema
from serving.answer.types import Deadline, Delta, Message

REQUEST = Generation((Message("system", "Be brief."), Message("user", "Hi?")), "r", max_tokens=9, temperature=0.5)
HELLO = Said(events=("Hel", "lo."))
KEY = "sk-not-to-be-told"


class FakeSleep:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds, time.monotonic)


def synthesizer_of(fake: FakeEndpoint, sleep: FakeSleep | None = None, **options: Any) -> EndpointSynthesizer:
    endpoint = Endpoint(fake.url, "large", **{"key": SecretStr(KEY), **options})
    return EndpointSynthesizer(endpoint, sleep=sleep or FakeSleep(), dice=lambda: 1.0)


async def reply(fake: FakeEndpoint, request: Generation = REQUEST, deadline: Deadline | None = None, **options: Any):  # type: ignore[no-untyped-def]
    async with fake.serving():
        synthesizer = synthesizer_of(fake, **options)
        try:
            return [delta async for delta in synthesizer.generate(request, deadline=deadline or soon())]
        finally:
            await synthesizer.close()


async def test_a_reply_comes_in_deltas_with_its_usage() -> None:
    fake = FakeEndpoint(HELLO)
    assert await reply(fake) == [Delta("Hel"), Delta("lo."), Delta("", "stop", 11, 3)]
    assert fake.bodies[0] == {
        "model": "large",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi?"}],
        "max_tokens": 9,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert fake.headers[0]["authorization"] == f"bearer {KEY}"


async def test_a_reply_at_its_length_says_so_and_pieces_are_counted_when_no_usage_is_told() -> None:
    deltas = await reply(FakeEndpoint(Said(events=("a", "b"), finish="length", usage=None)))
    assert deltas[-1] == Delta("", "length", 0, 2)


GRAMMAR, SCHEMA = {"grammar": "(?:yes|no)"}, {"schema": schema(3)}
PROPERTIES = ["declined", "decline_reason", "cites", "text"]


@pytest.mark.parametrize(
    ("constraint", "held_to", "sent"),
    [
        ("vllm", GRAMMAR, lambda body: body["structured_outputs"] == {"regex": "(?:yes|no)"}),
        ("vllm", SCHEMA, lambda body: list(body["structured_outputs"]["json"]["properties"]) == PROPERTIES),
        (
            "json_schema",
            SCHEMA,
            lambda body: body["response_format"]["json_schema"]["schema"]["required"] == PROPERTIES,
        ),
        ("json_schema", GRAMMAR, lambda body: "response_format" not in body),
        ("none", SCHEMA, lambda body: not {"response_format", "structured_outputs"} & set(body)),
    ],
)
async def test_the_constraint_is_sent_as_the_endpoint_takes_it(
    constraint: str, held_to: dict[str, str], sent: Callable[[dict[str, Any]], bool]
) -> None:
    fake = FakeEndpoint(HELLO)
    request = Generation(REQUEST.messages, "r", max_tokens=9, **held_to)  # type: ignore[arg-type]
    await reply(fake, request, constraint=constraint, length_field="max_completion_tokens")
    assert sent(fake.bodies[0])
    assert fake.bodies[0]["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("said", "kind", "named"),
    [
        (Said(401, {"message": f"bad key {KEY}"}), EndpointKeyError, "key_env"),
        (Said(403, {"message": "no"}), EndpointKeyError, "key_file"),
        (Said(404, {"message": "no such model"}), ModelNotFoundError, "'large'"),
        (Said(400, {"message": "This model's maximum context length is 9"}), InputTooLongError, "window"),
        (Said(400, {"message": "x", "code": "context_length_exceeded"}), InputTooLongError, "window"),
        (Said(400, {"message": "response_format is unsupported"}), GrammarError, "constraint to none"),
        (Said(400, {"message": "what?"}), EndpointError, "400"),
        (Said(events=("a",), finish="content_filter"), EndpointError, "filter"),
    ],
)
async def test_what_trying_again_cannot_mend_is_a_typed_error_at_once(
    said: Said, kind: type[AnswerError], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fake = FakeEndpoint(said)
    with pytest.raises(kind, match=named) as caught:
        await reply(fake)
    assert not caught.value.retryable
    assert len(fake.bodies) == 1
    assert KEY not in f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"


@pytest.mark.parametrize(
    "failed",
    [
        Said(500, {"message": "x"}),
        Said(503, {"message": "x"}),
        Said(408, {"message": "x"}),
        Said(hangs_up=True),
        Said(raw=b"data: {\n\n"),
        Said(raw=b""),
        Said(raw=b'data: {"error": {"message": "boom"}}\n\n'),
    ],
)
async def test_a_call_that_fails_before_its_first_token_is_made_again(failed: Said) -> None:
    fake, sleep = FakeEndpoint(failed, failed, HELLO), FakeSleep()
    deltas = await reply(fake, sleep=sleep)
    assert "".join(delta.text for delta in deltas) == "Hello."
    assert sleep.slept == [0.5, 1.0]


async def test_attempts_end() -> None:
    fake = FakeEndpoint(Said(502, {"message": "x"}))
    with pytest.raises(UnavailableError, match="502"):
        await reply(fake, attempts=3)
    assert len(fake.bodies) == 3


async def test_an_endpoint_that_is_not_there_is_an_incident() -> None:
    fake = FakeEndpoint()
    fake.url = "http://127.0.0.1:9/v1"
    synthesizer = synthesizer_of(fake, attempts=2)
    with pytest.raises(UnavailableError, match="base_url"):
        [delta async for delta in synthesizer.generate(REQUEST, deadline=soon())]
    await synthesizer.close()


async def test_an_endpoint_that_is_busy_is_left_alone_as_long_as_it_asks() -> None:
    fake, sleep = FakeEndpoint(Said(429, {"message": "x"}, {"retry-after": "7"}), HELLO), FakeSleep()
    assert (await reply(fake, sleep=sleep))[-1].finish_reason == "stop"
    assert sleep.slept == [7.0]
    with pytest.raises(OverloadedError) as caught:
        await reply(FakeEndpoint(Said(429, {"message": "x"}, {"retry-after": "60"})), sleep=sleep)
    assert caught.value.retry_after_s == 60.0
    assert sleep.slept == [7.0], "it asks for more time than there is: nothing is waited for"


@pytest.mark.parametrize("broken", [Said(events=("The",), hangs_up=True), Said(events=("The",), raw=b"data: {\n\n")])
async def test_nothing_is_asked_again_once_something_was_written(broken: Said) -> None:
    fake = FakeEndpoint(broken, HELLO)
    with pytest.raises(UnavailableError):
        await reply(fake)
    assert len(fake.bodies) == 1


async def test_the_deadline_ends_the_stream_and_the_connection() -> None:
    fake = FakeEndpoint(Said(events=("a", "b", "c"), stall_s=0.3))
    deltas = await reply(fake, deadline=soon(0.5))
    assert deltas == [Delta("a"), Delta("", "deadline", 0, 1)]
    await asyncio.wait_for(fake.left.wait(), 5)
    assert await reply(FakeEndpoint(HELLO), deadline=soon(0.0)) == [Delta("", "deadline")]


async def test_leaving_closes_the_connection() -> None:
    fake = FakeEndpoint(Said(events=("a",) * 50, stall_s=0.05))
    async with fake.serving():
        synthesizer = synthesizer_of(fake)
        async with aclosing(synthesizer.generate(REQUEST, deadline=soon())) as deltas:  # type: ignore[type-var]
            async for _ in deltas:
                break
        await asyncio.wait_for(fake.left.wait(), 1)
        fake.left.clear()
        task = asyncio.create_task(_drain(synthesizer))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(fake.left.wait(), 1)
        await synthesizer.close()


async def _drain(synthesizer: EndpointSynthesizer) -> None:
    async for _ in synthesizer.generate(REQUEST, deadline=soon()):
        pass


# Keys


def test_a_key_is_read_from_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MODELS_KEY", f" {KEY}\n")
    (tmp_path / "key").write_text(f"{KEY}\n")
    for found in (read_key("MODELS_KEY", None), read_key(None, tmp_path / "key")):
        assert found is not None
        assert found.get_secret_value() == KEY
        assert KEY not in repr(Endpoint("https://models.example/v1", "large", found))
    assert read_key(None, None) is None


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_key_that_is_not_there_names_the_setting(
    content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MODELS_KEY", raising=False)
    if content is not None:
        (tmp_path / "key").write_text(content)
        monkeypatch.setenv("MODELS_KEY", content)
    with pytest.raises(EndpointKeyError, match=r"models\.synthesizer\.openai\.key_file"):
        read_key(None, tmp_path / "key")
    with pytest.raises(EndpointKeyError, match="key_env names MODELS_KEY"):
        read_key("MODELS_KEY", None)


def test_the_name_tells_the_host_and_no_more() -> None:
    assert EndpointSynthesizer(Endpoint("https://models.example:8443/v1?k=v", "large")).name == "large@models.example"


def test_tokens_are_estimated_from_above() -> None:
    assert [EstimatingCounter().count(text) for text in ("", "abc", "日本", "\ud800")] == [0, 2, 3, 1]
