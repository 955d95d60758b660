"""Which sentences can be quoted."""

from __future__ import annotations

import pytest

from serving.answer.quotes import quotable
from serving.answer.types import Passage


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("The tide turns every six hours. It is so.", ["The tide turns every six hours."]),
        (
            "The tide turns every six hours . The moon raises the sea .",
            ["The tide turns every six hours.", "The moon raises the sea."],
        ),
        ("She said `` the tide turns every six hours ! ''", []),
        ("The tide turns every six hours", ["The tide turns every six hours."]),
    ],
)
def test_sentences_that_stand_alone(text: str, quoted: list[str]) -> None:
    assert [sentence for _, sentence in quotable([Passage(id="p", text=text)], 9)] == quoted
