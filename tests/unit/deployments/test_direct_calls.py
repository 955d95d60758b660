"""Models called on their own, over scripted handles: each in a permit that is sized before and settled after."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
import pytest

from serving.answer.errors import InvalidQuestionError, OverloadedError, UnavailableError
from serving.answer.gate import Budget, Gate, Kind, Load
from serving.answer.seams import Pair
from serving.answer.types import Deadline, PairScore, Passage, Phases, Reason, Scored, Verdict
from serving.deployments.direct import DirectCalls

from .test_handles import FakeHandle, FakeResponse, remote

PHASES = Phases(tokenise_s=0.1, queue_s=0.2, compute_s=0.3, total_s=0.6, tokens=30, padded_tokens=40)
FACTS = [Passage("0", "The tower was finished in 1889."), Passage("1", "It is 330 metres tall.")]


class FakeModels:
    """Scripted deployments: ``asked`` are their calls; while ``busy`` is not set they wait."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.loads: list[Load] = []
        self.gate: Gate | None = None
        self.wait_s = 0.0
        self.generation = 1

    def handles(self) -> dict[str, Any]:
        return {
            "reranker": FakeHandle(read=self.rerank, name=lambda: FakeResponse("reranker@1")),
            "verifier": FakeHandle(read=self.verify, name=lambda: FakeResponse("verifier@1")),
            "embedder": FakeHandle(measured=self.embed, name=lambda: FakeResponse("embedder@1")),
        }

    def rerank(self, query: str, documents: list[str], **rest: Any) -> FakeResponse:
        self.asked.append((query, documents, rest["long_document"]))
        scored = Scored(tuple(PairScore(0.5) for _ in documents), PHASES, f"reranker@{self.generation}")
        return self._give(scored)

    def verify(self, pairs: list[Pair], **_: Any) -> FakeResponse:
        self.asked.append(tuple(pairs))
        verdicts = [Verdict(0.9 if "1889" in p.premise else 0.1, Reason.ENTAILED) for p in pairs]
        read = tuple(PairScore(verdict.score, 2, 0, truncated=True) for verdict in verdicts)
        return self._give((verdicts, Scored(read, PHASES, f"verifier@{self.generation}")))

    def embed(self, texts: list[str], **rest: Any) -> FakeResponse:
        self.asked.append((texts, rest["query"]))
        return self._give((np.array([[0.6, 0.8]] * len(texts), dtype=np.float32), PHASES))

    def _give(self, value: Any) -> FakeResponse:
        assert self.gate is not None
        self.loads.append(self.gate.load(Kind.DIRECT))
        return FakeResponse(self.error or value, after_s=self.wait_s)


@pytest.fixture
def models() -> FakeModels:
    return FakeModels()


def calls_over(models: FakeModels, *, tokens: int = 1000, share: Budget | None = None) -> DirectCalls:
    budgets = dict.fromkeys(Kind, Budget(concurrency=2, tokens=tokens, queue=0))
    models.gate = Gate(budgets, time.monotonic, tenants={Kind.DIRECT: share} if share else None)
    return DirectCalls(models.handles(), models.gate, wait_s=0.0)


def soon() -> Deadline:
    return Deadline.after(5.0, time.monotonic)


async def test_a_rerank_reserves_what_it_may_use(models: FakeModels) -> None:
    calls = calls_over(models)
    reranked = await calls.rerank("q" * 30, ["d" * 60] * 3, long_document="error", tenant=None, deadline=soon())
    assert reranked.model == "reranker@1"
    assert [pair.score for pair in reranked.scored.pairs] == [0.5] * 3
    assert models.asked == [("q" * 30, ["d" * 60] * 3, "error")]
    assert models.loads == [Load(1, 3 * (21 + 11), 0)]
    assert models.gate is not None
    assert models.gate.load(Kind.DIRECT) == Load(0, 0, 0)


async def test_a_check_adds_up_what_its_calls_took(models: FakeModels) -> None:
    checked = await calls_over(models).check(
        "The tower was finished in 1889.", FACTS, floor=0.5, tenant=None, deadline=soon()
    )
    [claim] = checked.claims
    assert (claim.reason, [citation.chunk for citation in claim.citations]) == (Reason.ENTAILED, [0])
    assert (checked.model, checked.truncated) == ("verifier@1", True)
    assert checked.chunks == 2 * checked.pairs
    assert checked.phases.tokens == 30 * len(models.asked)
    assert models.loads[0].tokens > sum(len(fact.text) for fact in FACTS) // 3


async def test_what_was_replaced_is_named_as_it_is_now(models: FakeModels) -> None:
    calls = calls_over(models)

    async def named() -> tuple[str, str]:
        reranked = await calls.rerank("q", ["d"], long_document=None, tenant=None, deadline=soon())
        checked = await calls.check("It was finished in 1889.", FACTS, floor=0.5, tenant=None, deadline=soon())
        return reranked.model, checked.model

    assert await named() == ("reranker@1", "verifier@1")
    models.generation = 2
    assert await named() == ("reranker@2", "verifier@2")


async def test_vectors_cross_as_bytes(models: FakeModels) -> None:
    embedded = await calls_over(models).embed(["a", "b"], query=True, tenant=None, deadline=soon())
    assert (embedded.dimension, embedded.model, embedded.phases) == (2, "embedder@1", PHASES)
    assert [np.frombuffer(vector, "<f4").tolist() for vector in embedded.vectors] == [
        pytest.approx([0.6, 0.8]),
        pytest.approx([0.6, 0.8]),
    ]
    assert models.asked == [(["a", "b"], True)]


async def test_what_is_more_than_there_is_room_for_is_refused_before_any_work(models: FakeModels) -> None:
    calls = calls_over(models, tokens=100)
    with pytest.raises(OverloadedError, match="direct budget of 100"):
        await calls.rerank("q", ["d" * 400], long_document=None, tenant=None, deadline=soon())
    assert models.asked == []


async def test_a_tenant_has_its_share(models: FakeModels) -> None:
    calls = calls_over(models, share=Budget(concurrency=1, tokens=1000, queue=0))
    models.wait_s = 0.05
    first = asyncio.create_task(calls.embed(["a"], query=False, tenant="loud", deadline=soon()))
    await asyncio.sleep(0.01)
    with pytest.raises(OverloadedError, match="tenant's direct budget") as refused:
        await calls.embed(["a"], query=False, tenant="loud", deadline=soon())
    assert refused.value.retry_after_s is not None
    await calls.embed(["a"], query=False, tenant="quiet", deadline=soon())
    await first


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (remote(OverloadedError("full", retry_after_s=7.0)), OverloadedError),
        (remote(InvalidQuestionError("no")), InvalidQuestionError),
        (UnavailableError("down"), UnavailableError),
    ],
)
async def test_errors_stay_typed_and_the_permit_comes_back(
    models: FakeModels, raised: Exception, expected: type[Exception]
) -> None:
    calls = calls_over(models)
    models.error = raised
    with pytest.raises(expected) as caught:
        await calls.rerank("q", ["d"], long_document=None, tenant="t", deadline=soon())
    if expected is OverloadedError:
        assert (caught.value.retryable, caught.value.retry_after_s) == (True, 7.0)  # type: ignore[attr-defined]
    assert models.gate is not None
    assert models.gate.load(Kind.DIRECT) == Load(0, 0, 0)
