"""What may stand in a log."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.errors import OverloadedError
from serving.logs import MAX_VALUE_CHARS, described, shortened, text_line

PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s"]+)')


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(), max_size=4))
def test_a_line_reads_back_as_what_was_told(fields: dict[str, str]) -> None:
    line = text_line(fields)
    assert line.isascii()
    assert line.isprintable()
    read = {name: json.loads(value) if value.startswith('"') else value for name, value in PAIR.findall(line)}
    assert read == fields


def test_numbers_and_truths_are_plain() -> None:
    assert (
        text_line({"ms": 1630.5, "tokens": 12, "verified": True, "x": None})
        == "ms=1630.5 tokens=12 verified=True x=None"
    )


@given(st.text())
def test_what_is_shortened_begins_as_it_was(text: str) -> None:
    short = shortened(text)
    assert len(short) <= MAX_VALUE_CHARS
    assert text.startswith(short.removesuffix("…"))


def raised() -> Exception:
    try:
        try:
            raise KeyError("a secret passage")
        except KeyError as error:
            raise OverloadedError("the budget is spent\nreally") from error
    except OverloadedError as error:
        return error


def test_an_error_is_told_by_types_and_places() -> None:
    said = described(raised())
    assert said.startswith('serving.answer.errors.OverloadedError("the budget is spent\\nreally") at ')
    assert " <- KeyError at " in said
    assert f"{__file__}:" in said
    assert said.count(" raised") == 2
    assert "secret" not in said
    assert "\n" not in said


def test_causes_in_a_circle_end() -> None:
    one, two = ValueError("secret"), TypeError("secret")
    one.__cause__, two.__cause__ = two, one
    assert described(one) == "ValueError at no frame <- TypeError at no frame"


def test_what_was_suppressed_stays_out() -> None:
    def fail() -> None:
        try:
            raise KeyError("secret")
        except KeyError:
            raise ValueError("secret") from None

    with pytest.raises(ValueError, match="secret") as caught:
        fail()
    assert "KeyError" not in described(caught.value)
