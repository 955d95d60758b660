"""Cases run side by side: none lost, none twice, stopped when nothing works."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from serving.answer.errors import UnavailableError
from serving.cli.console import Steps
from serving.cli.evaluating.errors import RunStoppedError
from serving.cli.evaluating.kept import Kept
from serving.cli.evaluating.running import PATIENCE, run_cases
from serving.evaluation.records import Ranked


@dataclass(frozen=True)
class Row:
    id: str


ROWS = [Row(str(number)) for number in range(12)]


class FakeStage:
    """Ranks, or breaks as it is told to, and counts how many are under way at once."""

    def __init__(self, broken: set[str] | None = None, stop_at: str = "") -> None:
        self._broken = broken or set()
        self._stop_at = stop_at
        self.asked: list[str] = []
        self.most = self._now = 0

    async def __call__(self, row: Row) -> Ranked:
        self.asked.append(row.id)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await asyncio.sleep(0)
            if row.id == self._stop_at:
                raise RunStoppedError("gone")
            if row.id in self._broken:
                raise UnavailableError("no")
            return Ranked(id=row.id)
        finally:
            self._now -= 1


async def run(stage: FakeStage, kept: Kept[Ranked], concurrency: int = 3) -> dict[str, Ranked]:
    return await run_cases(ROWS, stage, Ranked, kept, concurrency=concurrency, steps=Steps())


async def test_each_row_is_run_once_and_some_at_a_time() -> None:
    stage = FakeStage()
    cases = await run(stage, Kept())
    assert sorted(stage.asked) == sorted(cases) == sorted(row.id for row in ROWS)
    assert stage.most == 3


async def test_a_row_that_breaks_is_a_case_with_its_error_and_is_tried_again() -> None:
    kept: Kept[Ranked] = Kept()
    cases = await run(FakeStage({"4"}), kept)
    assert cases["4"].error == "unavailable: no"
    again = FakeStage()
    cases = await run(again, kept)
    assert again.asked == ["4"]
    assert cases["4"].error is None


async def test_when_everything_breaks_the_run_stops() -> None:
    stage = FakeStage({row.id for row in ROWS})
    with pytest.raises(RunStoppedError, match=f"{PATIENCE} cases in a row broke.*unavailable: no"):
        await run(stage, Kept(), concurrency=1)
    assert len(stage.asked) == PATIENCE


async def test_a_server_that_is_gone_stops_the_run_and_keeps_the_finished() -> None:
    kept: Kept[Ranked] = Kept()
    with pytest.raises(RunStoppedError, match="gone"):
        await run(FakeStage(stop_at="6"), kept, concurrency=1)
    assert sorted(kept.finished) == ["0", "1", "2", "3", "4", "5"]


async def test_a_fault_of_ours_is_not_swallowed() -> None:
    async def bug(row: Row) -> Ranked:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_cases(ROWS, bug, Ranked, Kept(), concurrency=2, steps=Steps())
