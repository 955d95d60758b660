"""The measure of the guards: its swaps change what they say they change, and its exit status tells how it went."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from finetune.pairs import swaps
from serving.answer.guards.rejecting import Reading

SCRIPTS = Path(__file__).parents[3] / "scripts"
ROWS = [
    ("Alice visited 20 towns in 1995.", "In 1995 Alice visited 20 towns."),
    ("It is 5 km long.", "It is 5 km long."),
    ("The tower is old.", "The tower is old."),
]


def measure(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(SCRIPTS.parent)}
    command = [sys.executable, str(SCRIPTS / "measure_guards.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_without_data_it_cannot_run() -> None:
    done = measure("--data", "/nonexistent")
    assert done.returncode == 2
    assert json.loads(done.stdout.splitlines()[-1])["bars"] == []


def test_it_ends_with_the_bars_as_one_line(tmp_path: Path) -> None:
    (tmp_path / "grounding").mkdir()
    for name in ("begin", "breaking_nli", "expertqa", "factcg", "factcheck_gpt", "fever_symmetric", "summedits"):
        rows = [{"id": f"{name}-{n}", "claim": c, "document": d, "label": 1} for n, (c, d) in enumerate(ROWS)]
        with gzip.open(tmp_path / "grounding" / f"{name}.dev.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    done = measure("--data", str(tmp_path))
    bars = {bar["name"]: bar for bar in json.loads(done.stdout.splitlines()[-1])["bars"]}
    assert bars["falsely rejected together, all labels"]["value"] == 0
    for kind in ("numbers", "dates", "units", "negation added"):
        assert bars[f"caught: {kind}"]["value"] == 1, done.stdout
        assert len(bars[f"caught: {kind}"]["ci95"]) == 2


@pytest.mark.parametrize(
    ("swap", "claim", "false"),
    [
        ("swapped_numbers", "It has 20 rooms.", ["It has 23 rooms."]),
        ("swapped_dates", "It ended on 3 March 2020.", ["It ended on 4 March 2020.", "It ended on 3 April 2020."]),
        ("swapped_units", "It is 5 km long.", ["It is 5 miles long."]),
        ("negated", "It is old.", ["It is not old."]),
        ("unnegated", "It is not old.", ["It is old."]),
        ("swapped_roles", "Alice follows Bob.", ["Bob follows Alice."]),
    ],
)
def test_a_swap_changes_one_thing(swap: str, claim: str, false: list[str]) -> None:
    assert list(getattr(swaps, swap)(claim))[: len(false)] == false


def test_denials_are_the_sentences_that_negate_once() -> None:
    text = "The old tower is not open today. It is not only old, it is tall. No, it is not open there. It is not."
    assert list(swaps.denials(Reading(text))) == ["The old tower is open today."]
