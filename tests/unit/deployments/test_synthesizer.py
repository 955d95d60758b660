"""Which synthesizer a deployment runs: by the settings, with the key from where they say it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from models.errors import EndpointKeyError
from models.remote_synthesizer import EndpointSynthesizer
from serving.answer.seams import Generation
from serving.answer.types import Deadline, Delta, Message
from serving.deployments.base import ModelDeployment
from serving.deployments.synthesizer import SynthesizerDeployment, endpoint_of, started
from serving.settings import Settings, parse

KEY = "sk-not-to-be-told"


def settings_of(**openai: object) -> Settings:
    endpoint = {"base_url": "https://models.example/v1", "model": "large", "key_env": "MODELS_KEY", **openai}
    return parse({"models": {"synthesizer": {"kind": "openai", "openai": endpoint}}})


async def test_an_endpoint_is_called_with_what_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELS_KEY", KEY)
    settings = settings_of(constraint="vllm", attempts=2, length_field="max_completion_tokens")
    endpoint = endpoint_of(settings)
    assert (endpoint.base_url, endpoint.model, endpoint.constraint) == ("https://models.example/v1", "large", "vllm")
    assert (endpoint.attempts, endpoint.length_field) == (2, "max_completion_tokens")
    assert endpoint.key is not None
    assert endpoint.key.get_secret_value() == KEY
    assert KEY not in f"{settings!r} {settings.model_dump_json()} {endpoint!r}"
    synthesizer = await started(settings)
    assert isinstance(synthesizer, EndpointSynthesizer)
    assert synthesizer.name == "large@models.example"
    await synthesizer.health()
    await synthesizer.close()


async def test_without_its_key_a_replica_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODELS_KEY", raising=False)
    with pytest.raises(EndpointKeyError, match="MODELS_KEY"):
        await started(settings_of())


class FakeSynthesizer:
    """Writes one delta, then nothing until it is closed, which takes a moment."""

    closed = False

    async def generate(self, _request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        try:
            yield Delta("Chain ")
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            self.closed = True


async def test_a_reply_is_in_flight_until_the_engine_is_rid_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Serve awaits the destructor and then takes it off the class, where Python would call it and await nothing.
    monkeypatch.delattr(SynthesizerDeployment.func_or_class, "__del__")
    deployment: Any = object.__new__(SynthesizerDeployment.func_or_class)
    ModelDeployment.__init__(deployment)
    deployment._in_flight, deployment._synthesizer = 0, FakeSynthesizer()
    reply = deployment.generate(Generation((Message("user", "x"),), "r1", max_tokens=4), timeout_s=5.0)
    assert await deployment.in_flight() == 0
    assert (await anext(reply)).text == "Chain "
    assert await deployment.in_flight() == 1
    await reply.aclose()
    assert deployment._synthesizer.closed
    assert await deployment.in_flight() == 0
