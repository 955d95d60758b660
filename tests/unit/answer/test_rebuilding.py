"""Rebuilding: every shown byte is a proven claim, a heading or code that may stand there, or syntax made here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer import grounding
from serving.answer.admission import Admitted, admit
from serving.answer.citations import parse
from serving.answer.rebuilding import rebuild
from serving.answer.statements import Block
from serving.answer.text import content_words
from serving.answer.types import Citation, Judged, Passage, Reason, Support
from serving.answer.verification import correct, decompose

PASSAGES = [
    Passage(
        id="a", title="Towers", text="The tower was built in 1889.\n\n    x = tower()\n    print(x)\n\nCity and height."
    ),
    Passage(id="b", title="Museums", text="The museum opened in 1793."),
    Passage(id="c", title="Rivers", text="The river flows."),
]


def shown(reply: str, *, proven: str = "", question: str = "", passages: list[Passage] = PASSAGES) -> Admitted:
    """What is shown of a reply of which the claims that hold ``proven`` are."""
    parsed = parse(reply, len(passages))
    decomposed = decompose(parsed)
    judged = [
        Judged(s.claim, Reason.ENTAILED, tuple(Citation(chunk, 0.9) for chunk in s.claim.chunks))
        if proven in s.claim.text
        else Judged(s.claim, Reason.NOT_ENTAILED)
        for s in decomposed.checkable
    ]
    return admit(parsed, correct(decomposed, judged, floor=0.5), passages, question)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("- A yes [1].\n- B [1].\n- C yes [1].", "- A yes.\n- C yes."),
        ("- A yes [1].\n- B [1].", "A yes."),
        ("1. A [1].\n2. B yes [1].\n3. C yes [1].", "1. B yes.\n2. C yes."),
        ("3) A yes [1].\n4) B yes [1].", "1) A yes.\n2) B yes."),
        ("- A [1].\n  - B yes [1].\n  - C yes [1].\n- D yes [1].", "- B yes.\n- C yes.\n- D yes."),
        ("- A yes [1]. More yes [1].\n- B [1].", "A yes. More yes."),
        ("- A yes [1].\nLazily on, yes [1].\n- B yes [1].", "- A yes. Lazily on, yes.\n- B yes."),
        ("- A yes [1].\n\nText yes [1].\n\n- B yes [1].", "A yes.\n\nText yes.\n\nB yes."),
        ("> Quoted yes [1].\n> And no [1].", "Quoted yes."),
        ("One [1]. - Two yes [1].", "Two yes."),
        ("One [1]. # Two yes [1].", "Two yes."),
        ("塔は高い yes [1]。川は yes [1]。", "塔は高い yes。川は yes。"),
        ("A line yes [1]\nAnother yes [1].\n\nNo [1].", "A line yes\n\nAnother yes."),
    ],
)
def test_lists_and_paragraphs(reply: str, text: str) -> None:
    assert shown(reply, proven="yes").text == text


TABLE = "| City | Height |\n|---|--:|\n| Tower yes | 330 [1] |\n| Museum | 20 [2] |\n| Tower two yes | 30 [1] |\n"


def test_rows_are_shown_under_their_header() -> None:
    admitted = shown(TABLE, proven="yes")
    assert admitted.text == "| City | Height |\n|---|---|\n| Tower yes | 330 |\n| Tower two yes | 30 |"
    assert [claim.statement.claim.text for claim in admitted.claims] == ["Tower yes | 330", "Tower two yes | 30"]


def test_a_row_whose_header_its_passages_do_not_bear_out_is_dropped() -> None:
    admitted = shown(TABLE.replace("[1]", "[2]"), proven="yes")
    assert (admitted.text, admitted.verified) == ("", False)
    assert (Reason.NOT_ENTAILED, 3) in admitted.dropped
    assert shown(TABLE.replace("[1]", "[2]"), proven="yes", question="Which city, which height?").text


def test_a_row_without_a_header_is_no_claim() -> None:
    assert shown("| The tower yes | 330 [1] |\n").text == ""


@pytest.mark.parametrize(
    ("heading", "is_shown"),
    [
        ("## The tower", True),
        ("## The museum", False),  # a word of another passage
        ("## The famous tower", False),
        ("## Tower, not built", False),  # negates
        ("## Tower [9]", False),
        ("## Tower ### <built>", False),
    ],
)
def test_a_heading_needs_a_claim_below_it_and_no_word_of_its_own(heading: str, is_shown: bool) -> None:
    admitted = shown(f"{heading}\n\nThe tower was built in 1889 [1].", proven="tower")
    claim = "The tower was built in 1889."
    assert admitted.text == (f"{heading}\n\n{claim}" if is_shown else claim)
    assert shown(f"{heading}\n\nThe tower was built in 1889 [1].", proven="x").text == ""


def test_a_heading_is_not_shown_above_another_section() -> None:
    reply = "# Towers\n\n## Built\n\nNo [1].\n\n## Tower\n\nThe tower yes [1].\n\n# The tower"
    assert shown(reply, proven="yes").text == "# Towers\n\n## Tower\n\nThe tower yes."


@pytest.mark.parametrize(
    ("code", "is_shown"),
    [
        ("    x = tower()\n    print(x)", True),
        ("x = tower()", True),
        ("x = museum()", False),
        ("The river flows.", False),
    ],
)
def test_code_is_shown_only_verbatim_from_what_the_claim_above_cites(code: str, is_shown: bool) -> None:
    admitted = shown(f"The tower yes [1]:\n\n```evil\n{code}\n```\n\nA museum [2].", proven="yes")
    assert admitted.text == (f"The tower yes:\n\n```\n{code}\n```" if is_shown else "The tower yes:")
    assert len(admitted.claims) == 1


def test_code_that_was_cut_off_or_has_no_claim_above_is_not_shown() -> None:
    assert shown("The tower yes [1]:\n\n```\nx = tower()", proven="yes").text == "The tower yes:"
    assert shown("```\nx = tower()\n```\n\nThe tower yes [1].", proven="yes").text == "The tower yes."


def test_sentences_that_would_read_as_one_get_paragraphs_of_their_own() -> None:
    parsed = parse("Yes, so $5 [1]. " + "No [1]. " * 3 + "\n\nAsk for no [1]. Well [1]. 5 of them [1].", 1)
    survivors = [s for s in parsed.statements if s.claim.text in ("Ask for no.", "5 of them.")]
    text = rebuild(survivors, 1).text
    assert [s.claim.text for s in parse(text, 1).statements] == ["Ask for no.", "5 of them."]


def test_what_does_not_read_back_is_left_out_and_counted() -> None:
    parsed = parse("It is a[1; [1], [2]2] so.", 3)
    assert [s.claim.text for s in parsed.statements] == ["It is a[1; 2] so."]
    admitted = shown("It is a[1; [1], [2]2] so.")
    assert (admitted.text, admitted.dropped) == ("", ((Reason.NOT_A_CLAIM, 1),))


LINES = st.lists(
    st.sampled_from(
        [
            "The tower was built in 1889 [1].",
            "The museum opened [2]. The river flows [3].",
            "- The tower [1].",
            "- The museum opened in 1793 [2][3]",
            "  2. The river [3]. It flows [3].",
            "1. The tower [1]",
            "> The river [3].",
            "## The tower",
            "# Rivers [3]",
            "| City | Height |",
            "| River | Flows |",
            "|---|---|",
            "| Tower | 1889 [1] |",
            "| | The river. [3] |",
            "```",
            "x = tower()",
            "",
            "",
            "終わり [1]。次 [2]。",
            "lazily on [2]",
            'He said "go [1]."',
            "---",
            "$$",
        ]
    ),
    max_size=14,
)


@given(LINES, st.sets(st.integers(0, 12)))
def test_every_byte_of_an_answer_is_a_claim_or_syntax_or_what_may_stand_there(lines: list[str], lost: set[int]) -> None:
    parsed = parse("\n".join(lines), len(PASSAGES))
    decomposed = decompose(parsed)
    judged = [
        Judged(s.claim, Reason.NOT_ENTAILED)
        if number in lost
        else Judged(s.claim, Reason.ENTAILED, tuple(Citation(chunk, 0.9) for chunk in s.claim.chunks))
        for number, s in enumerate(decomposed.checkable)
    ]
    admitted = admit(parsed, correct(decomposed, judged, floor=0.5), PASSAGES, "")
    data = admitted.text.encode()
    at = 0
    for claim in admitted.claims:
        assert data[claim.span.start : claim.span.end].decode() == claim.statement.claim.text
        may_say = {w for c in claim.judged.citations for w in content_words(PASSAGES[c.chunk].text)}
        may_say |= {w for c in claim.judged.citations for w in content_words(PASSAGES[c.chunk].title)}
        gap = data[at : claim.span.start].decode()
        gap = gap.replace("```\nx = tower()\n```", "")  # verbatim from the first passage
        assert set(content_words(re.sub(r"\b\d+[.)]", "", gap))) <= may_say
        at = claim.span.end
    assert data[at:].decode().replace("```\nx = tower()\n```", "").strip(" |\n") == ""


@given(LINES)
def test_what_is_marked_parses_back_to_what_was_rebuilt(lines: list[str]) -> None:
    parsed = parse("\n".join(lines), len(PASSAGES))
    claims = (Block.PARAGRAPH, Block.ITEM, Block.TABLE)
    survivors = [s for s in parsed.statements if s.kind not in claims or s.claim.chunks]
    rebuilt = rebuild(survivors, len(PASSAGES))
    supports = [
        Support(placed.span, survivors[placed.index].claim.chunks, ())
        for placed in rebuilt.placed
        if survivors[placed.index].kind in claims
    ]
    again = parse(grounding.insert(rebuilt.text, supports), len(PASSAGES))
    assert again.text == rebuilt.text
    found = [(s.claim.span, s.claim.chunks) for s in again.statements if s.kind in claims]
    assert found == [(support.span, support.chunks) for support in supports]


@pytest.mark.parametrize(
    "reply",
    [
        "a[1; [1], \ue200cite\ue202turn0search0\ue2012] and [3]. Mr. J. K. Row| a | b |\nng ",
        "[ [2].1-3]す[3【1】]。",
        "said [[1]]é\r\n！([1])é[٣]\ue200cite\ue202turn0search0\ue201([1], [2].",
        "【1】。[٣]「やめろ。」と言った［2］。円周率は３．T```\nheで",
        "\n\n$$\nx[1]\n$$\nSo $x[1]$ is $5 [1~~~\n].",
    ],
)
def test_replies_that_once_came_back_differently(reply: str) -> None:
    parsed = parse(reply, 3)
    survivors = [s for s in parsed.statements if s.claim.chunks]
    rebuilt = rebuild(survivors, 3)
    supports = [Support(placed.span, survivors[placed.index].claim.chunks, ()) for placed in rebuilt.placed]
    again = parse(grounding.insert(rebuilt.text, supports), 3)
    assert again.text == rebuilt.text
    assert [(s.claim.span, s.claim.chunks) for s in again.statements] == [(s.span, s.chunks) for s in supports]
