"""The product in this process: handles that call directly, rows answered from their own passages, replies reused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from serving.answer import context
from serving.answer.reference import RareWordRelevance
from serving.answer.seams import Generation, Pair, Parts
from serving.answer.types import Deadline, Delta, Message, Reason
from serving.cli.console import Steps
from serving.cli.evaluating import doing
from serving.cli.evaluating.ablations import Part, without
from serving.cli.evaluating.cache import OutputCache
from serving.cli.evaluating.local import LocalHandle, LocalProduct
from serving.deployments.handles import RemoteSynthesizer, RemoteVerifier
from serving.evaluation.memory import Vocabulary
from serving.evaluation.rows import QaPassage, QaRow
from serving.settings import Settings, parse
from tests.unit.answer.fakes import (
    FakeClassifier,
    FakeCounter,
    FakeReranker,
    FakeRetriever,
    FakeSynthesizer,
    FakeVerifier,
)


def soon() -> Deadline:
    return Deadline.after(5, time.monotonic)


async def test_a_deployment_is_started_called_and_closed_here() -> None:
    async with LocalProduct(Settings(), ("verifier",), Steps()) as product:
        assert await product.names() == {"verifier": "overlap@0.85"}
        verifier = RemoteVerifier(product.handles["verifier"])
        verdicts = await verifier.verify([Pair("The tide turns.", "The tide turns.")], deadline=soon())
        assert [verdict.reason for verdict in verdicts] == [Reason.ENTAILED]


async def test_a_stream_that_nobody_reads_on_is_closed() -> None:
    closed = asyncio.Event()

    class Replica:
        async def generate(self, request: Generation, *, timeout_s: float) -> AsyncIterator[Delta]:
            try:
                while True:
                    yield Delta("word ")
            finally:
                closed.set()

    synthesizer = RemoteSynthesizer(LocalHandle(Replica()))  # type: ignore[arg-type]
    stream = synthesizer.generate(Generation((Message("user", "x"),), "r", max_tokens=1), deadline=soon())
    assert (await anext(stream)).text == "word "
    await stream.aclose()
    await asyncio.wait_for(closed.wait(), 5)


ROWS = [
    QaRow(
        id=f"q{number}",
        question=f"Who lives at {place}?",
        passages=(QaPassage(text=f"The heron of {place} lives at {place} alone.", title=place),),
        answers=("heron",),
        answerable=True,
    )
    for number, place in enumerate(("Tessen", "Korran"))
]


async def _of_the_index(words: Sequence[str], *, deadline: Deadline) -> list[int]:
    raise AssertionError("a row's words are counted over its own suite")


class Engine:
    """A local engine whose models are scripted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cache: OutputCache, reply: str) -> None:
        self.inner = FakeSynthesizer(reply, stall_s=0.01)
        parts = Parts(
            classifier=FakeClassifier(),
            retriever=FakeRetriever([]),  # what the index would find: nothing of it may be used
            reranker=FakeReranker(),
            synthesizer=self.inner,
            verifier=FakeVerifier(),
            relevance=RareWordRelevance(_of_the_index),  # another corpus: it must not be asked
            counter=FakeCounter(),
        )
        counter = SimpleNamespace(control_tokens=())
        monkeypatch.setattr(doing, "parts_of", lambda *_: (parts, counter))
        self._cache = cache

    async def asker(self) -> doing.RowAsker:
        settings = parse({"answer": {"grammar": "free"}})

        async def names() -> dict[str, str]:
            return {"synthesizer": "s@1", "reranker": "r@1", "verifier": "v@1"}

        product: Any = SimpleNamespace(settings=settings, handles={}, names=names)
        engine = await doing.LocalEngine.over(product, self._cache)
        return doing.RowAsker(engine, Vocabulary.of(ROWS), suite="own@1", timeout_s=20)


async def test_a_row_is_answered_from_its_own_passages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = Engine(monkeypatch, OutputCache(tmp_path / "c"), "The heron of Tessen lives at Tessen [1].")
    record = await (await engine.asker())(ROWS[0])
    assert record.answer is not None
    assert record.answer.text == "The heron of Tessen lives at Tessen."
    assert [passage.text for passage in record.answer.passages] == [ROWS[0].passages[0].text]
    assert (record.answer.versions.index, record.answer.versions.synthesizer) == ("own@1", "s@1")
    said = engine.inner.requests[0].messages[-1].content
    assert "Tessen" in said
    assert "Korran" not in said


async def test_an_equal_prompt_is_not_generated_again_and_keeps_its_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = OutputCache(tmp_path / "c")
    engine = Engine(monkeypatch, cache, "The heron of Tessen lives at Tessen [1].")
    first = await (await engine.asker())(ROWS[0])
    again = await (await engine.asker())(ROWS[0])
    assert len(engine.inner.requests) == 1
    assert (first.reused, again.reused) == (False, True)
    assert first.answer is not None
    assert again.answer is not None
    assert again.answer.text == first.answer.text
    assert again.answer.timings_ms.synthesize > 30  # six deltas at least, ten milliseconds each
    await (await engine.asker())(ROWS[1])
    assert len(engine.inner.requests) == 2


async def test_guards_are_switched_off_and_on_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = ROWS[0].model_copy(update={"passages": (QaPassage(text="The heron of Tessen is 3 years old."),)})
    engine = Engine(monkeypatch, OutputCache(tmp_path / "c"), "The heron of Tessen is 4 years old [1].")
    outcomes = []
    for parts in ((), (Part.GUARDS,), ()):
        with without(parts):
            record = await (await engine.asker())(row)
        assert record.answer is not None
        outcomes.append(record.answer.outcome.value)
    assert outcomes == ["declined", "answered", "declined"]


def test_every_part_that_can_be_switched_off_is_there() -> None:
    with without(list(Part)):
        assert context.order(4) == [0, 1, 2, 3]
    assert context.order(4) == [0, 2, 3, 1]
