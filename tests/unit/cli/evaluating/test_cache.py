"""Replies that were generated before: the same ones for the same prompt, no others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from serving.answer.seams import Generation
from serving.answer.types import Deadline, Delta, Message
from serving.cli.evaluating.cache import CachedSynthesizer, OutputCache, key_of
from serving.cli.evaluating.errors import EvaluationError
from tests.unit.answer.fakes import FakeSynthesizer

PROMPT = (Message("user", "Why?"),)


def request(name: str = "r1", text: str = "Why?", **rest: object) -> Generation:
    return Generation((Message("user", text),), name, max_tokens=9, **rest)  # type: ignore[arg-type]


async def reply(synthesizer: CachedSynthesizer, asked: Generation) -> tuple[str, Delta]:
    deltas = [delta async for delta in synthesizer.generate(asked, deadline=Deadline.after(9, time.monotonic))]
    return "".join(delta.text for delta in deltas), deltas[-1]


@pytest.fixture
def cache(tmp_path: Path) -> OutputCache:
    return OutputCache(tmp_path / "new" / "cache.sqlite")


async def test_an_equal_prompt_is_generated_once(cache: OutputCache) -> None:
    inner = FakeSynthesizer("Because it is [1].")
    cached = CachedSynthesizer(inner, cache, "m@1")
    first, last = await reply(cached, request("r1"))
    again, end = await reply(cached, request("r2"))
    assert again == first == "Because it is [1]."
    assert len(inner.requests) == 1
    assert (end.finish_reason, end.prompt_tokens, end.completion_tokens) == ("stop", 100, 20)
    assert last.finish_reason == "stop"
    assert list(cached.saved_s) == ["r2"]


@pytest.mark.parametrize(
    "other", [request(text="How?"), request(grammar="(a|b)"), request(temperature=0.0, grammar="")]
)
async def test_another_prompt_is_another_reply(cache: OutputCache, other: Generation) -> None:
    inner = FakeSynthesizer("So.")
    cached = CachedSynthesizer(inner, cache, "m@1")
    await reply(cached, request())
    await reply(cached, other)
    assert len(inner.requests) == 2


async def test_another_model_is_another_reply(cache: OutputCache) -> None:
    await reply(CachedSynthesizer(FakeSynthesizer("One."), cache, "m@1"), request())
    text, _ = await reply(CachedSynthesizer(FakeSynthesizer("Two."), cache, "m@2"), request())
    assert text == "Two."


async def test_what_was_sampled_or_cut_off_by_time_is_not_kept(cache: OutputCache) -> None:
    late = FakeSynthesizer("So", finish_reason="deadline")
    cached = CachedSynthesizer(late, cache, "m@1")
    await reply(cached, request())
    await reply(cached, request())
    assert len(late.requests) == 2
    drawn = FakeSynthesizer("So.")
    cached = CachedSynthesizer(drawn, cache, "m@1")
    await reply(cached, request(temperature=0.7))
    await reply(cached, request(temperature=0.7))
    assert len(drawn.requests) == 2


def test_what_is_kept_outlives_the_process(tmp_path: Path) -> None:
    first = OutputCache(tmp_path / "c.sqlite")
    first.put({key_of("a", 1): {"x": 1.5}})
    first.close()
    again = OutputCache(tmp_path / "c.sqlite")
    assert again.get(key_of("a", 1)) == {"x": 1.5}
    assert again.get(key_of("a", 2)) is None


def test_a_cache_that_cannot_be_opened_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").write_text("no database, but long enough to be taken for a header of one" * 9)
    with pytest.raises(EvaluationError, match="cannot be opened"):
        OutputCache(tmp_path / "c.sqlite")
