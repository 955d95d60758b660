"""Rolling out over a scripted service: done when every replica says so, put back when one cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from serving.answer.errors import UnavailableError
from serving.deployments.replacing import PREVIOUS, Part, Report
from serving.deployments.rollout import PLACES, RefusedError, Rollout

A, B = "weights:citation@aaaaaaaaaaaa", "weights:citation@bbbbbbbbbbbb"
ADAPTER = PLACES["citation"]


@dataclass
class FakeService:
    """Replicas that take what they are configured with after so many reports; ``refusing`` ones never do."""

    delays: list[int]
    refusing: frozenset[int] = frozenset()
    config: dict[str, Any] = field(default_factory=dict)
    configured: list[dict[str, Any]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = [Part(None, "base", None) for _ in self.delays]
        self.left = [0 for _ in self.delays]

    def user_config(self, deployment: str) -> dict[str, Any]:
        assert deployment == "Synthesizer"
        return dict(self.config)

    def configure(self, deployment: str, user_config: Mapping[str, Any]) -> None:
        assert deployment == "Synthesizer"
        self.config = dict(user_config)
        self.configured.append(dict(user_config))
        self.left = list(self.delays)

    def reports(self, deployment: str, timeout_s: float) -> dict[str, Report]:
        assert timeout_s > 0
        wanted = self.config.get("adapter")
        for number, part in enumerate(self.parts):
            self.left[number] -= 1
            if part.reference == wanted:
                continue
            if self.left[number] > 0:
                self.parts[number] = Part(part.reference, part.version, wanted, settled=False)
            elif number in self.refusing and wanted == B:
                self.parts[number] = Part(part.reference, part.version, wanted, problem="It does not fit.")
            else:
                self.parts[number] = Part(wanted, wanted or "base", wanted)
        return {str(number): Report(str(number), {"adapter": part}) for number, part in enumerate(self.parts)}


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def rollout(service: FakeService, said: list[str] | None = None) -> Rollout:
    time = Time()
    said = [] if said is None else said
    return Rollout(service, ADAPTER, say=said.append, clock=time.clock, sleep=time.sleep)


def test_it_is_done_when_every_replica_says_so() -> None:
    service, said = FakeService([1, 4, 2]), list[str]()
    rolled = rollout(service, said).use(A, timeout_s=60)
    assert (rolled.before, rolled.after) == (("base",), (A,))
    assert {part.reference for part in service.parts} == {A}
    assert said[-1].startswith("2 of 3 replicas")


def test_previous_goes_back_and_forth() -> None:
    service = FakeService([1, 1])
    with pytest.raises(RefusedError, match="answer weights list"):
        rollout(service).previous()
    rollout(service).use(A, timeout_s=60)
    assert rollout(service).previous() is None
    rollout(service).use(B, timeout_s=60)
    assert rollout(service).previous() == A
    rollout(service).use(rollout(service).previous(), timeout_s=60)
    assert rollout(service).previous() == B
    assert service.config == {"adapter": A, PREVIOUS: {"adapter": B}}


def test_what_is_in_use_is_left_alone() -> None:
    service = FakeService([1])
    rollout(service).use(A, timeout_s=60)
    rolled = rollout(service).use(A, timeout_s=60)
    assert rolled.before == rolled.after == (A,)
    assert len(service.configured) == 1


def test_one_that_refuses_has_all_go_back() -> None:
    service = FakeService([1, 3], refusing=frozenset({1}))
    rollout(service).use(A, timeout_s=60)
    before = dict(service.config)
    with pytest.raises(RefusedError, match="It does not fit; what served before goes on serving"):
        rollout(service).use(B, timeout_s=60)
    assert service.config == before
    for _ in range(5):
        service.reports("Synthesizer", 1)
    assert {part.reference for part in service.parts} == {A}


def test_one_that_takes_too_long_has_all_go_back() -> None:
    service = FakeService([1, 1_000])
    with pytest.raises(UnavailableError, match="put back"):
        rollout(service).use(A, timeout_s=10)
    assert service.config == {}


def test_who_gives_up_waiting_has_all_go_back() -> None:
    service = FakeService([1, 1_000])

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Rollout(service, ADAPTER, say=lambda _: None, sleep=interrupt).use(A, timeout_s=60)
    assert service.config == {}
