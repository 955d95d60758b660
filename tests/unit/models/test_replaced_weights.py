"""The synthesizer while its weights are replaced, over a scripted engine: which weights wrote what."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import models.synthesizer
from models.errors import ModelUnusableError
from models.synthesizer import VllmSynthesizer
from models.vllm_options import VllmOptions
from serving.answer.errors import UnavailableError
from serving.answer.seams import Generation
from serving.answer.types import Deadline, Delta, Message

OLD, NEW, BAD = Path("/old"), Path("/new"), Path("/bad")

LONG = 50
"""A reply of so many tokens ends when it is let to."""


class FakeEncoder:
    """Any messages are three tokens."""

    def __init__(self, _tokenizer: object) -> None:
        pass

    def encode(self, _messages: object) -> list[int]:
        return [1, 2, 3]


@pytest.fixture(autouse=True)
def _no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.synthesizer, "ChatEncoder", FakeEncoder)


@dataclass
class FakeEngine:
    """Writes one token a step, each the name of what it holds at that moment. ``NEW`` loads; ``BAD`` does not."""

    model: Path = OLD
    adapters: list[str] = field(default_factory=list)
    tokenizer: object = None
    closed: bool = False
    lost: bool = False
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def dead(self) -> bool:
        return self.closed

    def adapter(self, name: str, _folder: Path) -> str:
        if name == "wide":
            raise ModelUnusableError("of rank 64")
        return name

    async def load_adapter(self, adapter: str) -> None:
        self.adapters.append(adapter)

    async def forget_adapter(self, adapter: str) -> None:
        self.adapters.remove(adapter)

    async def reload(self, model: Path) -> None:
        await asyncio.sleep(0)
        if model == BAD:
            self.model = BAD  # half of it is written over
            raise ModelUnusableError("another shape")
        if self.lost:
            raise ModelUnusableError("the disk is gone")
        self.model = model

    async def stream(
        self, _prompt: list[int], request: Generation, _request_id: str, adapter: str | None = None
    ) -> AsyncGenerator[Any, None]:
        for number in range(request.max_tokens):
            await asyncio.sleep(0)
            assert adapter is None or adapter in self.adapters
            text = f"{self.model}{adapter or ''} "
            last = number == request.max_tokens - 1
            if last and request.max_tokens == LONG:
                await self.may_end.wait()
            reply = SimpleNamespace(text=text, token_ids=[1], finish_reason="stop" if last else None)
            yield SimpleNamespace(outputs=[reply], finished=last)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def synthesizer(engine: FakeEngine, **options: Any) -> VllmSynthesizer:
    if "adapter" in options:
        engine.adapters.append(options["adapter"][0])
    made: Any = engine
    return VllmSynthesizer(made, VllmOptions(OLD, name="old", **options), clock=time.monotonic)


def asking(tokens: int) -> Generation:
    return Generation((Message("user", "x"),), "r", max_tokens=tokens)


async def reply(written: VllmSynthesizer, tokens: int = 20, seconds: float = 30.0) -> list[Delta]:
    deadline = Deadline.after(seconds, time.monotonic)
    return [delta async for delta in written.generate(asking(tokens), deadline=deadline)]


async def begun(written: VllmSynthesizer) -> asyncio.Task[list[Delta]]:
    task = asyncio.create_task(reply(written, LONG))
    async with asyncio.timeout(10):
        while not written._progress.in_flight:  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.001)
    return task


def texts(deltas: list[Delta]) -> set[str]:
    return {delta.text.strip() for delta in deltas}


async def test_a_reply_under_way_ends_with_the_weights_it_began_with(engine: FakeEngine) -> None:
    written = synthesizer(engine)
    under_way = await begun(written)
    load = asyncio.create_task(written.load(NEW, "new"))
    await asyncio.sleep(0)
    late = asyncio.create_task(reply(written))
    await asyncio.sleep(0.05)
    assert not late.done()
    engine.may_end.set()
    await load
    assert {delta.version for delta in await under_way} == {"old"}
    assert texts(await under_way) == {"/old"}
    assert {delta.version for delta in await late} == {"new"}
    assert texts(await late) == {"/new"}
    assert written.name == "new"


async def test_weights_that_do_not_load_leave_the_old_ones(engine: FakeEngine) -> None:
    written = synthesizer(engine)
    with pytest.raises(ModelUnusableError, match="another shape"):
        await written.load(BAD, "bad")
    assert written.name == "old"
    deltas = await reply(written)
    assert texts(deltas) == {"/old"}
    assert deltas[0].version == "old"


async def test_an_engine_that_knows_no_weights_any_more_is_dead(engine: FakeEngine) -> None:
    written = synthesizer(engine)
    engine.lost = True
    with pytest.raises(ModelUnusableError):
        await written.load(BAD, "bad")
    with pytest.raises(UnavailableError):
        await written.health()


async def test_who_waits_for_weights_keeps_its_deadline(engine: FakeEngine) -> None:
    written = synthesizer(engine)
    loading = asyncio.Event()

    async def slow(_model: Path) -> None:
        await loading.wait()

    engine.reload = slow  # type: ignore[method-assign]  # an engine that takes its time
    load = asyncio.create_task(written.load(NEW, "new"))
    await asyncio.sleep(0.01)
    assert await reply(written, seconds=0.05) == [Delta("", "deadline", 3)]
    loading.set()
    await load


async def test_an_adapter_takes_over_beside_the_other(engine: FakeEngine) -> None:
    written = synthesizer(engine, adapter=("a", Path("/a")))
    under_way = await begun(written)
    hand_over = asyncio.create_task(written.adapt(("b", Path("/b")), "with b"))
    while written.name == "old":  # noqa: ASYNC110 (nothing tells)
        await asyncio.sleep(0)
    late = await reply(written)
    assert not under_way.done()
    assert (texts(late), late[0].version) == ({"/oldb"}, "with b")
    assert set(engine.adapters) == {"a", "b"}
    engine.may_end.set()
    assert texts(await under_way) == {"/olda"}
    assert {delta.version for delta in await under_way} == {"old"}
    await hand_over
    assert engine.adapters == ["b"]
    await written.adapt(None, "bare")
    assert texts(await reply(written)) == {"/old"}
    assert engine.adapters == []


async def test_an_adapter_that_the_engine_cannot_run_leaves_the_other(engine: FakeEngine) -> None:
    written = synthesizer(engine, adapter=("a", Path("/a")))
    with pytest.raises(ModelUnusableError, match="rank 64"):
        await written.adapt(("wide", Path("/wide")), "wide")
    assert texts(await reply(written)) == {"/olda"}
