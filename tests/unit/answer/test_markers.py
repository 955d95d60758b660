"""The marker scanner: what is a marker, what it names, and what stays text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.cleaning import clean
from serving.answer.inline import scan
from serving.answer.markers import resolve


@pytest.mark.parametrize(
    ("marker", "chunks"),
    [
        ("[1]", (0,)),
        ("[1][2]", (0, 1)),
        ("[1] [2]", (0, 1)),
        ("[1], [2]", (0, 1)),
        ("([1])", (0,)),
        ("([1], [3])", (0, 2)),
        ("[1, 2]", (0, 1)),
        ("[1,2]", (0, 1)),
        ("[1; 2]", (0, 1)),
        ("[1、2]", (0, 1)),
        ("[1-3]", (0, 1, 2)),
        ("[1–3]", (0, 1, 2)),
        ("[1 - 3]", (0, 1, 2)),
        ("[1, 2-3]", (0, 1, 2)),
        ("[[1]]", (0,)),
        ("[[1, 2]]", (0, 1)),
        ("【1】", (0,)),
        ("【1†source】", (0,)),
        ("［2］", (1,)),
        ("[^1]", (0,)),
        ("[1†L3-L5]", (0,)),
        ("[ 1 ]", (0,)),
        ("[١]", (0,)),
        ("[２]", (1,)),
        ("[३]", (2,)),
        ("[1,\u00a02]", (0, 1)),
        ("[" + ", ".join(["1"] * 100) + "]", (0,)),
    ],
)
def test_every_way_to_write_a_marker(marker: str, chunks: tuple[int, ...]) -> None:
    for reply in (f"It ends {marker}.", f"It ends. {marker}", f"It ends.{marker} It goes on."):
        parsed = parse(reply, 3)
        assert parsed.statements[0].claim.text == "It ends."
        assert parsed.statements[0].claim.chunks == chunks
        assert parsed.fabricated == ()


@pytest.mark.parametrize(
    ("marker", "fabricated"),
    [
        ("[0]", ("0",)),
        ("[4]", ("4",)),
        ("[٤]", ("٤",)),
        ("[1, 9]", ("9",)),
        ("[2-9]", ("2-9",)),
        ("[3-1]", ("3-1",)),
        ("[1-999999999]", ("1-99999999999999"[:11],)),
        ("[12345]", ("12345",)),
        ("[" + "9" * 5000 + "]", ("9" * 16,)),
        ("【4:0†source】", ("4:0",)),
        ("[40-27]", ("40-27",)),
    ],
)
def test_what_names_no_passage_is_fabricated_and_never_clamped(marker: str, fabricated: tuple[str, ...]) -> None:
    parsed = parse(f"It ends {marker}.", 3)
    assert parsed.text == "It ends."
    assert parsed.fabricated == parsed.statements[0].claim.fabricated == fabricated


@pytest.mark.parametrize(("marker", "years"), [("[2019]", ("2019",)), ("[1990-1995]", ("1990-1995",))])
def test_years_are_removed_and_reported_and_held_against_no_one(marker: str, years: tuple[str, ...]) -> None:
    parsed = parse(f"It was built {marker} here [1].", 3)
    assert (parsed.text, parsed.years, parsed.fabricated) == ("It was built here.", years, ())


@pytest.mark.parametrize(
    "text",
    [
        "Take a[0] of it.",
        "Take arr_1[2] of it.",
        "Take m[0][1] of it.",
        "Take f()[1] of it.",
        "Take x[1]=2 as given.",
        "Take x[1](2) as given.",
        "Take x[1].name as given.",
        "Take os.[1]x as given.",
        "Take in2019[1] as given.",
        "Take word[9] as given.",
        "Use `x [1]` here.",
        "Use ``x ` [1]`` here.",
        "See [1](http://a.example/b_(c)) here.",
        "See [the [1] docs](http://a.example) here.",
        "See ![1](a.png) here.",
        "See [the docs][1] here.",
        "See http://a.example/x[1] here.",
        "See <http://a.example/[1]> here.",
        "[1]: http://a.example",
        "Let $x[1]$ be it.",
        "Let $$x [1]$$ be it.",
        r"Let \(x [1]\) be it.",
        r"Let \[x [1]\] be it.",
        "A list [x], [ ], [3 apples], [E1, E2] and [Smith 2020] stay.",
        "- [x] done",
        "- [ ] to do",
        "```\ny [1]\n```",
        "~~~~\ny [1]\n~~~\nz [2]",
        "```\nunterminated [1]",
        "- item\n  ```py\n  y [1]\n  ```",
        "- ```\n  y [1]",
        "$$\nx [1]\n$$",
        "| a | b |\n|:--|--:|",
    ],
)
def test_brackets_that_are_no_markers_are_text(text: str) -> None:
    parsed = parse(text, 3)
    assert parsed.text == text
    assert not any(s.claim.chunks or s.claim.fabricated for s in parsed.statements)
    assert parsed.fabricated == ()


def test_a_fence_in_a_quote_ends_with_the_quote() -> None:
    parsed = parse("> ```\n> x [1]\nIt ends [2].", 3)
    assert [(s.kind.value, s.claim.chunks) for s in parsed.statements] == [("code", ()), ("paragraph", (1,))]


@pytest.mark.parametrize(
    ("reply", "text", "chunks"),
    [
        ("$$x$$[1] is so.", "$$x$$ is so.", (0,)),
        ("It costs $5 [1], not $6.", "It costs $5, not $6.", (0,)),
        ("It costs US$5 [1] or A$6.", "It costs US$5 or A$6.", (0,)),
        ("It `is[0]` so[1].", "It `is[0]` so.", (0,)),
        ("An ` alone [1].", "An ` alone.", (0,)),
        ("Das Haus[1] steht.", "Das Haus steht.", (0,)),
        ("首都です[1]。", "首都です。", (0,)),
        ("２０２０年[1]。", "２０２０年。", (0,)),
        ("है[1]।", "है।", (0,)),
        ("[the docs](http://a.example) [1].", "[the docs](http://a.example).", (0,)),
        (r"It is \$5 [1] and \$6.", r"It is \$5 and \$6.", (0,)),
    ],
)
def test_markers_beside_code_math_and_other_scripts(reply: str, text: str, chunks: tuple[int, ...]) -> None:
    parsed = parse(reply, 3)
    assert [(s.claim.text, s.claim.chunks) for s in parsed.statements] == [(text, chunks)]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("It ends \ue200cite\ue202turn0search0\ue201.", "It ends."),
        ("It ends. \ue200cite\ue202turn0search0\ue202turn1view2\ue201 Then.", "It ends. Then."),
        ("It ends.\ue200cite\ue202turn0sea", "It ends."),
        ("It \ue200ends\ue201 \ue200unclosed here.", "It here."),
        ("It \ue201ends.", "It ends."),
        ("```\nx\ue200cite\ue201\n```", "```\nx\n```"),
    ],
)
def test_citation_spans_of_the_private_use_area_are_removed(reply: str, text: str) -> None:
    parsed = parse(reply, 3)
    assert (parsed.text, parsed.fabricated) == (text, ())


def test_resolving_reads_numbers_once_each_in_the_order_written() -> None:
    assert resolve("[3, 1-2, 1]", 3).chunks == (2, 0, 1)


@given(st.text(alphabet=st.sampled_from(list("a1[]()`$\\ \n.,\ue200\ue201")), max_size=60), st.integers(0, 4))
def test_tokens_are_ordered_and_the_clean_text_maps_back(text: str, passages: int) -> None:
    tokens, end = scan(text, passages)
    assert end == len(text)
    at = 0
    for token in tokens:
        assert at <= token.start < token.end <= len(text)
        at = token.end
    found = clean(text, passages)
    assert len(found.text) == len(found.mask)
    for offset, character in enumerate(found.text):
        if not character.isspace():
            assert text[found.source_of(offset)] == character


@given(st.text(max_size=80), st.integers(0, 4), st.data())
def test_what_is_certain_of_a_prefix_holds_for_the_whole(text: str, passages: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    early, certain = scan(text[:cut], passages, final=False)
    whole, _ = scan(text, passages)
    assert early == [token for token in whole if token.start < certain]
