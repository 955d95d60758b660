"""Reranker and verifier deployments over a tiny real checkpoint: what was read, how long it took, and health."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serving.answer.errors import UnavailableError
from serving.answer.seams import Pair
from serving.answer.types import Phases, Reason
from serving.deployments.reranker import RerankerDeployment
from serving.deployments.verifier import VerifierDeployment
from serving.settings import parse
from tests.unit.models.tiny_checkpoints import pair_classifier

LONG = "the quick fox runs over the lazy dog. " * 20


class Recorder:
    """In place of the metrics, which need a running Ray to arrive anywhere."""

    def __init__(self) -> None:
        self.phases: list[Phases] = []

    def record(self, phases: Phases) -> None:
        self.phases.append(phases)


async def started(kind: Any, part: dict[str, Any], *handles: Any) -> tuple[Any, Recorder]:
    deployment = object.__new__(kind.func_or_class)
    await deployment.__init__(parse({"models": part}), *handles)
    deployment._metrics = Recorder()
    return deployment, deployment._metrics


async def test_a_cross_encoder_says_what_it_read_and_how_long_it_took(tmp_path: Path) -> None:
    folder = pair_classifier(tmp_path / "model", labels={0: "relevant"})
    chosen = {"kind": "cross_encoder", "model": f"path:{folder}", "threads": 1, "long_document": "truncate"}
    reranker, metrics = await started(RerankerDeployment, {"reranker": chosen}, None)
    scored = await reranker.read("the fox", ["a dog", LONG], timeout_s=30.0)
    assert [(pair.chunks, pair.truncated) for pair in scored.pairs] == [(1, False), (1, True)]
    whole = await reranker.read("the fox", [LONG], timeout_s=30.0, long_document="chunk_max")
    assert whole.pairs[0].chunks > 2
    assert await reranker.score("the fox", ["a dog"], timeout_s=30.0) == [
        pytest.approx(scored.pairs[0].score, abs=1e-5)
    ]
    assert metrics.phases[:2] == [scored.phases, whole.phases]
    assert await reranker.calls() == 3
    await reranker.check_health()
    reranker._current.current.close()


async def test_a_verifier_is_unhealthy_once_its_device_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pair_classifier(tmp_path / "model", labels={0: "not_entailment", 1: "entailment"})
    chosen = {"kind": "pair", "model": f"path:{folder}", "threads": 1, "threshold": 0.5}
    verifier, metrics = await started(VerifierDeployment, {"verifier": chosen})
    verdicts, scored = await verifier.read([Pair(LONG, "the fox runs"), Pair("", "a dog")], timeout_s=30.0)
    assert [verdict.score for verdict in verdicts] == [pair.score for pair in scored.pairs]
    assert verdicts[1].reason is Reason.NOT_ENTAILED
    assert metrics.phases == [scored.phases]
    await verifier.check_health()
    device = verifier._current.current.encoders[0]._runtime._device

    async def gone(_job: Any) -> Any:
        raise UnavailableError("The GPU is lost.")

    monkeypatch.setattr(device, "run", gone)
    with pytest.raises(UnavailableError, match="lost"):
        await verifier.verify([Pair("a fox", "a dog")], timeout_s=30.0)
    with pytest.raises(UnavailableError):
        await verifier.check_health()
    verifier._current.current.close()


async def test_the_overlap_reference_has_no_time_to_tell() -> None:
    verifier, metrics = await started(VerifierDeployment, {"verifier": {"kind": "overlap"}})
    verdicts, scored = await verifier.read([Pair("a quick fox", "quick fox")], timeout_s=30.0)
    assert (verdicts[0].reason, scored.pairs[0].score, scored.phases) == (Reason.ENTAILED, 1.0, Phases())
    assert metrics.phases == []
    await verifier.check_health()
