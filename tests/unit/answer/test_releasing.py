"""Releasing: what is shown early is in the answer, in its order, however the reply goes on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.answer.admission import admit
from serving.answer.citations import parse
from serving.answer.releasing import certain, question_of
from serving.answer.types import Citation, Claim, Judged, Passage, Reason
from serving.answer.verification import correct, decompose

PASSAGES = [Passage(id=name, text=f"The {name} was built.\n    x = 1") for name in ("tower", "museum", "river")]
FLOOR = 0.5


def verdict_on(claim: Claim) -> Judged:
    """Proven unless it says ``no``; below the floor when it says ``low``."""
    if "no" in claim.text:
        return Judged(claim, Reason.NOT_ENTAILED)
    score = 0.2 if "low" in claim.text else 0.9
    return Judged(claim, Reason.ENTAILED, tuple(Citation(chunk, score) for chunk in claim.chunks))


def early(reply: str, upto: int | None = None, *, unknown: str = "?") -> list[str]:
    """The claims that are certain once the first ``upto`` statements are there, without verdicts on ``unknown``."""
    parsed = parse(reply, len(PASSAGES))
    verdicts = {
        question_of(s.claim): verdict_on(s.claim) for s in decompose(parsed).checkable if unknown not in s.claim.text
    }
    found = certain(parsed.statements[:upto], verdicts, passages=len(PASSAGES), floor=FLOOR)
    return [statement.claim.text for statement, _ in found]


def final(reply: str) -> list[str]:
    parsed = parse(reply, len(PASSAGES))
    decomposed = decompose(parsed)
    judged = [verdict_on(s.claim) for s in decomposed.checkable]
    shown = admit(parsed, correct(decomposed, judged, floor=FLOOR), PASSAGES, "built?")
    return [claim.statement.claim.text for claim in shown.claims]


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        ("One yes [1]. Two yes [2].", ["One yes.", "Two yes."]),
        ("One yes [1]. Two no [2]. Three yes [2].", ["One yes.", "Three yes."]),
        ("One yes [1]. Two low [2].", ["One yes."]),
        ("One yes [1]. Two wait [2]. Three yes [3].", ["One yes."]),
        ("One yes [1]. Two yes [9]. Three yes [3].", ["One yes."]),
        ("One yes [1]. Two yes. Three yes [3].", ["One yes.", "Three yes."]),
        ("- One yes [1].\n- Two yes [2].", ["One yes.", "Two yes."]),
        ("# The tower\n\nOne yes [1].", ["One yes."]),
        ("One yes [1].\n\n| a | b |\n|---|---|\n| c yes | d [1] |\n\nTwo yes [1].", ["One yes."]),
        ("One yes [1]. A < ` B [ab]: 。[2] Three yes [1].", ["One yes."]),  # it does not read back alone
        ("Tower no [1]. It was built yes [1]. Two yes [2].", ["Two yes."]),
        ("One yes [1]. # Two yes [1]. Three yes [1].", ["One yes.", "Two yes.", "Three yes."]),
    ],
)
def test_what_is_certain(reply: str, claims: list[str]) -> None:
    assert early(reply, unknown="wait") == claims


PIECES = st.sampled_from(
    ("One yes", "Two no", "Three low", "It was built yes", "no", "[1]", "[2, 3]", "[9]", ". ", " ", "\n", "\n\n", "- ",
     "1. ", "# ", "| ", "|---|\n", "```\n", "x = 1", "。", "> ", "? ", "Four yes [1]. ", "- Five yes [2].\n")
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=24).map("".join))
def test_what_is_shown_early_is_in_the_answer_and_stays(reply: str) -> None:
    whole = final(reply)
    before: list[str] = []
    for upto in range(len(parse(reply, len(PASSAGES)).statements) + 1):
        shown = early(reply, upto)
        assert shown[: len(before)] == before
        assert whole[: len(shown)] == shown
        before = shown
