"""What ``answer ask`` and ``answer search`` print: plain when piped, and never steered by what a passage says."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from serving.answer.wire import Answer, PassageOut
from serving.cli.console import printable
from serving.cli.rendering import print_passage, render
from tests.unit.gateway.fakes import PASSAGE, TEXT, answered, declined, searched

HOSTILE = "[red]x[/red] \x1b[31mred\x1b[0m \x1b]0;owned\x07 \x9b2J \r\b\x00 \u202egnp.exe"
ESCAPE_CODES = re.compile(r"\x1b\[[0-9;]*m")
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printed(answer: Answer, *, terminal: bool = False) -> str:
    out = io.StringIO()
    colours: Any = "standard" if terminal else "auto"
    render(answer, Console(file=out, highlight=False, force_terminal=terminal, width=60, color_system=colours))
    return out.getvalue()


def test_an_answer_lists_its_sources_and_how_it_fared() -> None:
    assert printed(answered()).splitlines() == [
        "Chain makes one iterator of many [1].",
        "",
        "[1] itertools.chain  https://docs.example/itertools",
        "",
        "not verified whole, 2 dropped, cut short · 1.2 s",
    ]


def test_only_cited_passages_are_listed_under_their_own_numbers() -> None:
    answer = answered()
    other = answer.passages[0].model_copy(update={"title": "other"})
    claim = answer.claims[0].model_copy(
        update={"citations": (answer.claims[0].citations[0].model_copy(update={"chunk": 1}),)}
    )
    out = printed(answer.model_copy(update={"passages": (other, answer.passages[0]), "claims": (claim,)}))
    assert "[2] itertools.chain" in out
    assert "other" not in out


def test_a_verified_answer_says_so() -> None:
    answer = answered().model_copy(update={"verified": True, "truncated": False, "dropped": ()})
    assert printed(answer).splitlines()[-1] == "verified · 1.2 s"


def test_markers_are_coloured_on_a_terminal_and_nowhere_else() -> None:
    on_terminal = printed(answered(), terminal=True)
    assert re.search(r"\x1b\[1;36m ?\[1\]\x1b\[0m", on_terminal)
    assert ESCAPE_CODES.sub("", on_terminal) == printed(answered())


def test_a_pipe_has_no_width() -> None:
    text = "Words " * 40 + "end."
    assert printed(answered(text=text)).splitlines()[0] == f"{text[:-1]} [1]."
    assert len(printed(answered(text=text), terminal=True).splitlines()[0]) <= 60


def test_a_decline_gives_its_message_and_what_was_found() -> None:
    assert printed(declined()).splitlines() == [
        "The passages do not answer this.",
        "",
        "Found, without an answer:",
        "[1] itertools.chain  https://docs.example/itertools",
    ]


def test_a_decline_without_passages_is_its_message() -> None:
    assert printed(declined().model_copy(update={"passages": ()})) == "The passages do not answer this.\n"


def test_search_lists_passages_with_an_excerpt() -> None:
    assert printed(searched("r1", PASSAGE)).splitlines() == [
        "[1] itertools.chain  https://docs.example/itertools",
        "    Make one iterator of many iterables.",
    ]
    assert printed(searched("r1")) == "Nothing found.\n"


@pytest.mark.parametrize(
    "answer",
    [
        answered(title=HOSTILE),
        answered(text=f"{HOSTILE}."),
        declined(message=HOSTILE),
        searched("r1", PASSAGE.__class__(id="p", title=HOSTILE, text=HOSTILE)),
        searched("r1", PASSAGE.__class__(id="p", title="", url=HOSTILE, text="")),
        searched("r1", PASSAGE.__class__(id="p", title="", source_path=HOSTILE, text="")),
    ],
)
def test_markup_and_control_characters_are_shown_and_not_obeyed(answer: Answer) -> None:
    out = printed(answer)
    assert "[red]x[/red]" in out
    assert STEERING.findall(out) == []
    # On a terminal there are the colours that we chose; nothing but those.
    coloured = printed(answer, terminal=True)
    assert STEERING.findall(ESCAPE_CODES.sub("", coloured)) == []
    assert "\x1b[31m" not in coloured


def test_a_title_stays_on_its_line() -> None:
    passage = PassageOut.of(PASSAGE).model_copy(update={"title": "one\n[2] forged\ttitle", "url": "http://x/\n[3]"})
    out = io.StringIO()
    print_passage(Console(file=out, highlight=False), 1, passage)
    assert out.getvalue() == "[1] one [2] forged title  http://x/ [3]\n"


@given(st.text())
def test_printable_text_is_as_long_and_harmless(text: str) -> None:
    safe = printable(text)
    assert len(safe) == len(text)
    assert not set(STEERING.findall(safe)) - {"\t"}
    assert printable(safe) == safe
    assert all(kept in (original, "\ufffd") for kept, original in zip(safe, text, strict=True))


def test_text_of_every_script_is_left_alone() -> None:
    text = f"{TEXT} naïve\t日本語 עברית العربية 👩\u200d💻\n"
    assert printable(text) == text
