"""The Router's warm-up over scripted handles: ready only when every part has answered and the engine is made."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tokens import EstimatingCounter
from serving.answer.errors import DeadlineExceededError, InvalidQuestionError, OverloadedError, UnavailableError
from serving.answer.gate import Kind
from serving.answer.seams import english
from serving.answer.types import (
    Deadline,
    DeclineReason,
    Delta,
    PairScore,
    Phases,
    Reason,
    Route,
    Routing,
    Scored,
    Verdict,
)
from serving.deployments import router as module
from serving.deployments.router import RouterDeployment
from serving.gaps.errors import GapsDisabledError
from serving.gaps.records import GapQuery
from serving.gaps.settings import GapsSettings
from serving.settings import BudgetSettings, GateSettings, Settings, parse
from tests.unit.gateway.fakes import PASSAGE, answered, events_of


class FakeCounter:
    control_tokens: tuple[str, ...] = ()

    def __init__(self, _folder: Path) -> None:
        pass

    def count(self, text: str) -> int:
        return len(text.split())


class FakePart:
    """A deployment's handle. Methods named in ``failing`` raise until they are taken out of it."""

    RESULTS: dict[str, Any] = {  # noqa: RUF012 - read only
        "embed": np.zeros((1, 2), np.float32),
        "measured": (np.array([[0.6, 0.8]], np.float32), Phases(tokens=3)),
        "read": Scored((PairScore(0.5),), Phases(tokens=7)),
        "score": [0.5],
        "verify": [Verdict(1.0, Reason.ENTAILED)],
        "lexical": [PASSAGE],
        "hybrid": [],
        "version": "generation-1",
        "name": "a part",
        "calls": 0,
    }

    def __init__(self) -> None:
        self.failing: set[str] = set()

    def options(self, **_: Any) -> FakePart:
        return self

    def __getattr__(self, name: str) -> Any:
        class Method:
            @staticmethod
            def remote(*_: Any, **__: Any) -> Any:
                return self._stream() if name == "generate" else self._respond(name)

        return Method

    async def _respond(self, name: str) -> Any:
        if name in self.failing:
            raise UnavailableError("not yet")
        return self.RESULTS[name]

    async def _stream(self) -> Any:
        if "generate" in self.failing:
            raise UnavailableError("not yet")
        yield Delta("yes", finish_reason="stop")


# Serve awaits the destructor and then takes it off the class, where Python would call it and await nothing.
destroy = RouterDeployment.func_or_class.__del__
del RouterDeployment.func_or_class.__del__

PARTS = ("retriever", "embedder", "reranker", "verifier", "synthesizer")


@pytest.fixture
def parts() -> dict[str, FakePart]:
    return {name: FakePart() for name in PARTS}


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "TokenizerCounter", FakeCounter)
    monkeypatch.setattr(module, "NgramLanguage", lambda _languages: english)
    monkeypatch.setattr(module.Catalog, "locate", lambda *_, **__: tmp_path)
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path))  # the gap backlog is kept there


async def started(parts: dict[str, FakePart], settings: Settings | None = None) -> Any:
    router = object.__new__(RouterDeployment.func_or_class)
    await router.__init__(settings or Settings(), **parts)
    able = {name for name, part in parts.items() if not part.failing - {"name", "version"}}
    able |= {"index"} if "version" not in parts["retriever"].failing else set()
    able |= {"router"} if not any(part.failing for part in parts.values()) else set()
    await until_warm(router, able)
    return router


def test_tokens_are_estimated_for_a_model_that_is_served_elsewhere() -> None:
    endpoint = {"base_url": "https://models.example/v1", "model": "large"}
    elsewhere = parse({"models": {"synthesizer": {"kind": "openai", "openai": endpoint}}})
    assert isinstance(module.counter_of(elsewhere), EstimatingCounter)
    with_tokenizer = parse(
        {"models": {"synthesizer": {"kind": "openai", "openai": {**endpoint, "tokenizer": "path:/models/large"}}}}
    )
    assert isinstance(module.counter_of(with_tokenizer), FakeCounter)
    assert isinstance(module.counter_of(Settings()), FakeCounter)


async def until_warm(router: Any, able: set[str]) -> None:
    async with asyncio.timeout(30):
        while not able <= {name for name, warm in (await router.ready()).items() if warm}:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_it_is_ready_when_every_part_has_answered(parts: dict[str, FakePart]) -> None:
    router = await started(parts)
    assert await router.ready() == dict.fromkeys((*PARTS, "index", "router"), True)


@pytest.mark.parametrize(
    ("part", "method", "cold"),
    [
        ("embedder", "embed", {"embedder", "router"}),
        ("reranker", "score", {"reranker", "router"}),
        ("verifier", "verify", {"verifier", "router"}),
        ("synthesizer", "generate", {"synthesizer", "router"}),
        ("retriever", "lexical", {"retriever", "router"}),
        ("retriever", "version", {"index", "router"}),
        ("verifier", "name", {"router"}),
    ],
)
async def test_it_waits_for_each_and_says_for_which(
    parts: dict[str, FakePart], part: str, method: str, cold: set[str]
) -> None:
    parts[part].failing.add(method)
    router = await started(parts)
    assert {name for name, warm in (await router.ready()).items() if not warm} == cold
    with pytest.raises(UnavailableError, match="still warming up") as caught:
        await router.answer("What does chain do?", request_id="r1", timeout_s=5.0)
    assert all(name in caught.value.message for name in cold)
    assert caught.value.retry_after_s
    parts[part].failing.clear()
    await until_warm(router, {*PARTS, "index", "router"})


async def test_search_needs_no_model_to_be_ready(parts: dict[str, FakePart]) -> None:
    parts["synthesizer"].failing.add("generate")
    router = await started(parts)
    assert await router.search("chain", 1, timeout_s=5.0) == [PASSAGE]
    with pytest.raises(InvalidQuestionError):
        await router.search("  ", 1, timeout_s=5.0)
    router._warming.cancel()


async def test_models_are_called_on_their_own_inside_a_permit(parts: dict[str, FakePart]) -> None:
    share = BudgetSettings(concurrency=1, tokens=40, queue=0)
    router = await started(parts, Settings(gate=GateSettings(direct_per_tenant=share)))
    reranked = await router.rerank("chain", ["a text"], timeout_s=5.0, tenant="shop")
    assert (reranked.scored.pairs, reranked.model) == ((PairScore(0.5),), "a part")
    assert (await router.embed(["a text"], timeout_s=5.0, tenant="shop")).dimension == 2
    [claim] = (await router.check("A chain is long.", [], timeout_s=5.0, tenant="shop")).claims
    assert claim.reason is Reason.UNCITED
    with pytest.raises(OverloadedError, match="tenant's direct budget of 40"):
        await router.rerank("chain", ["a text" * 50], timeout_s=5.0, tenant="shop")
    parts["reranker"].failing.add("read")
    with pytest.raises(UnavailableError):
        await router.rerank("chain", ["a text"], timeout_s=5.0)
    assert router._gate.load(Kind.DIRECT).held == 0
    await destroy(router)


async def test_a_declined_question_is_kept_in_the_backlog(parts: dict[str, FakePart]) -> None:
    router = await started(parts)
    answer = await router.answer("What does chain do?", request_id="r1", timeout_s=5.0)
    assert answer.decline.reason is DeclineReason.NOTHING_RETRIEVED
    await router.answer("example.com", request_id="r2", timeout_s=5.0)  # a search: nothing is found, nothing declined
    parts["retriever"].failing.add("hybrid")
    with pytest.raises(UnavailableError):  # an incident
        await router.answer("What does zip do?", request_id="r3", timeout_s=5.0)
    await router._gaps._backlog.flush()
    page = await router.gaps(GapQuery(state=None))
    assert [(gap.question, gap.latest.request_id) for gap in page.gaps] == [("What does chain do?", "r1")]
    await destroy(router)


async def test_a_backlog_that_cannot_be_written_is_nobodys_concern(
    parts: dict[str, FakePart], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWER_HOME", "/dev/null")  # no folder, and none can be made there
    router = await started(parts)
    answer = await router.answer("What does chain do?", request_id="r1", timeout_s=5.0)
    assert answer.decline is not None
    assert all((await router.ready()).values())
    with pytest.raises(UnavailableError) as caught:
        await router.gaps(GapQuery())
    assert caught.value.code == "gaps_unavailable"


async def test_without_a_backlog_nothing_is_kept_and_asking_for_it_says_so(
    parts: dict[str, FakePart], tmp_path: Path
) -> None:
    router = await started(parts, Settings(gaps=GapsSettings(enabled=False)))
    await router.answer("What does chain do?", request_id="r1", timeout_s=5.0)
    with pytest.raises(GapsDisabledError, match=r"gaps\.enabled"):
        await router.gaps(GapQuery())
    await destroy(router)
    assert "gaps.sqlite3" not in os.listdir(tmp_path)


# Streaming


class FakeEngine:
    """Says scripted events; an exception among them is raised, None stalls. ``closed``: its generator was left."""

    def __init__(self, *steps: Any) -> None:
        self._steps = steps
        self.closed = False
        self.granted: Any = None

    async def route(self, question: str, *, deadline: Deadline) -> Routing:
        if not question.strip():
            raise InvalidQuestionError("empty")
        return Routing(Route.SINGLE_PASS, "a cue")

    async def events(self, question: str, *, granted: Route, **_: Any) -> Any:
        self.granted = granted
        try:
            for step in self._steps:
                if step is None:
                    await asyncio.sleep(60)
                if isinstance(step, BaseException):
                    raise step
                yield step
        finally:
            self.closed = True


async def streaming(parts: dict[str, FakePart], *steps: Any) -> tuple[Any, FakeEngine]:
    router = await started(parts, Settings(gaps=GapsSettings(enabled=False)))
    router._engine = FakeEngine(*steps)
    return router, router._engine


def held(router: Any) -> int:
    return int(router._gate.load(Kind.SINGLE_PASS).held)


async def test_events_are_streamed_inside_a_permit_that_is_back_before_the_answer(parts: dict[str, FakePart]) -> None:
    events = events_of(answered())
    router, engine = await streaming(parts, *events)
    stream = router.events("Why?", request_id="r1", timeout_s=5.0)
    got = [(event, held(router), engine.closed) async for event in stream]
    assert got == [*((event, 1, False) for event in events[:-1]), (events[-1], 0, True)]
    assert engine.granted is Route.SINGLE_PASS
    assert await router.answer("Why?", request_id="r1", timeout_s=5.0) == answered()
    assert held(router) == 0


async def test_an_error_in_a_stream_gives_the_permit_back(parts: dict[str, FakePart]) -> None:
    router, engine = await streaming(parts, *events_of(answered())[:2], DeadlineExceededError("late"))
    events = router.events("Why?", request_id="r1", timeout_s=5.0)
    assert [await anext(events), await anext(events)] == events_of(answered())[:2]
    with pytest.raises(DeadlineExceededError):
        await anext(events)
    assert (held(router), engine.closed) == (0, True)
    with pytest.raises(DeadlineExceededError):
        await router.answer("Why?", request_id="r1", timeout_s=5.0)
    with pytest.raises(InvalidQuestionError):
        await anext(router.events(" ", request_id="r1", timeout_s=5.0))


async def test_closing_a_stream_closes_the_engines_and_gives_the_permit_back(parts: dict[str, FakePart]) -> None:
    router, engine = await streaming(parts, *events_of(answered()))
    events = router.events("Why?", request_id="r1", timeout_s=5.0)
    await anext(events)
    assert (held(router), engine.closed) == (1, False)
    await events.aclose()
    assert (held(router), engine.closed) == (0, True)


@pytest.mark.parametrize("method", ["answer", "events"])
async def test_cancelling_one_who_waits_closes_the_engines_and_gives_the_permit_back(
    parts: dict[str, FakePart], method: str
) -> None:
    router, engine = await streaming(parts, events_of(answered())[0], None)

    async def read() -> None:
        if method == "answer":
            await router.answer("Why?", request_id="r1", timeout_s=5.0)
        async for _ in router.events("Why?", request_id="r1", timeout_s=5.0):
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.02)
    assert held(router) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (held(router), engine.closed) == (0, True)


async def test_what_a_stream_declines_is_kept_in_the_backlog(parts: dict[str, FakePart]) -> None:
    router = await started(parts)
    events = [event async for event in router.events("What does chain do?", request_id="r1", timeout_s=5.0)]
    assert [type(event).__name__ for event in events] == ["Routed", "Found", "Finished"]
    await router._gaps._backlog.flush()
    [gap] = (await router.gaps(GapQuery(state=None))).gaps
    assert gap.latest.request_id == "r1"
    await destroy(router)
