"""Which synthesizer a deployment runs: by the settings, with the key from where they say it is kept."""

from __future__ import annotations

import pytest

from models.errors import EndpointKeyError
from models.remote_synthesizer import EndpointSynthesizer
from serving.deployments.synthesizer import endpoint_of, started
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
