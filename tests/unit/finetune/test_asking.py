"""Held-out questions: what counts as the agreed form, and what is kept of a run that was stopped."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from finetune.citation.asking import Models, Outcomes, ask_all, is_valid
from finetune.citation.judging import judgement
from serving.answer.prompt import DECLINE_LINE
from serving.evaluation.rows import QaRow


@pytest.mark.parametrize(
    ("reply", "finish_reason", "valid"),
    [
        ("Paris is the capital of France [2].", "stop", True),
        ("It was built in 1889 [1]. It stands in Paris [1][3].", "stop", True),
        (DECLINE_LINE, "stop", True),
        (f" {DECLINE_LINE}\n", "stop", True),
        ("Paris is the capital of France [2].", "length", False),
        ("Paris is the capital of France.", "stop", False),
        ("It was built in 1889 [1]. It stands in Paris.", "stop", False),
        ("Paris is the capital of France [4].", "stop", False),
        (f"Paris is the capital of France [2]. {DECLINE_LINE}", "stop", False),
        ("", "stop", False),
    ],
)
def test_the_agreed_form(reply: str, finish_reason: str, valid: bool) -> None:
    assert is_valid(reply, finish_reason, 3) is valid


def row(name: str) -> QaRow:
    return QaRow(id=name, question="Who?", passages=(), answers=("She",), answerable=True)


def outcome(name: str, **given: object) -> Outcomes:
    found = Outcomes(name, answerable=True, valid=True, answered=True, holds=True, cited_right=1.0)
    return Outcomes(**{**asdict(found), **given})


def test_what_was_asked_before_is_not_asked_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text("".join(json.dumps(asdict(outcome(name))) + "\n" for name in "ba") + '{"id": "c", "answ')
    nowhere = Models(*(tmp_path / f"no {part}" for part in ("model", "embedder", "judges", "encoder")))
    assert [one.id for one in ask_all([row("a"), row("b")], nowhere, kept)] == ["a", "b"]
    assert kept.read_text().endswith("}\n")  # the line that a kill cut off is gone


def test_the_measures_of_a_judgement() -> None:
    found = [
        outcome("a"),
        outcome("b", holds=False, cited_right=0.5),
        outcome("c", answerable=False, answered=False, holds=None, cited_right=None),
        outcome("d", answerable=False, holds=None, valid=False, cited_right=None),
    ]
    before = [outcome("a"), outcome("b"), outcome("c", holds=None), outcome("d", holds=None)]
    values = {one.name: one.bar()["value"] for one in judgement([row(name) for name in "abcd"], found, before).measures}
    assert values["format_valid"] == 0.75
    assert values["reference_shown_beyond_twice_base"] == -1.5
    assert values["cited_passage_supports"] == 0.75
    assert values["right"] == 0.5
    assert values["unanswerable_declined"] == 0.5
    assert values["answerable_answered"] == 1.0
