"""The regression gate's six whole questions, asked of the running server."""

from __future__ import annotations

import pytest

from serving.cli.console import Steps
from serving.cli.evaluating.smoke import measure_questions, read_floors
from serving.cli.up import Server

pytestmark = pytest.mark.cluster


async def test_whole_questions_hold_their_floors(server: Server) -> None:
    known = read_floors()
    assert known.floors["questions/own"].keys() == {"right_decision", "str_em"}
    held = await measure_questions(server.url, known, Steps())
    assert {each.metric.name for each in held} == {"right_decision", "str_em"}
    assert all(each.ok for each in held), held
