"""Renderings: numbers by first appearance with their map, and addresses from passages alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.renderings import markdown_footnotes, markdown_links, plain
from serving.answer.types import Passage, Span, Support

TEXT = "It stands. It is tall. It shines."
SUPPORTS = [
    Support(Span(0, 10), (4, 2), (0.9, 0.8)),
    Support(Span(11, 22), (2,), (0.9,)),
    Support(Span(23, 33), (0,), (0.9,)),
]
PASSAGES = [
    Passage(id="a", text="", title="A page", url="https://a.example/x y_(z)"),
    Passage(id="b", text="", title="B"),
    Passage(id="c", text="", title="C](https://evil.example) [x", url="https://c.example/"),
    Passage(id="d", text="", title="D"),
    Passage(id="e", text="", source_path="e.md", url="javascript:alert(1)"),
]


def test_plain_text_numbers_by_first_appearance_and_lists_its_sources() -> None:
    rendering = plain(TEXT, SUPPORTS, PASSAGES)
    assert rendering.markers == {1: 2, 2: 4, 3: 0}
    body, sources = rendering.text.split("\n\n")
    assert body == "It stands [1][2]. It is tall [1]. It shines [3]."
    assert sources.splitlines() == [
        "[1] C](https://evil.example) [x https://c.example/",
        "[2] e.md",
        "[3] A page https://a.example/x%20y_%28z%29",
    ]


def test_markdown_links_point_where_the_passage_came_from() -> None:
    rendering = markdown_links(TEXT, SUPPORTS, PASSAGES)
    assert rendering.markers == {1: 2, 2: 4, 3: 0}
    assert rendering.text == (
        "It stands [[1]](https://c.example/)[2]. It is tall [[1]](https://c.example/). "
        "It shines [[3]](https://a.example/x%20y_%28z%29).\n\n[2] e.md"
    )


def test_markdown_footnotes_cannot_be_ended_by_a_title() -> None:
    rendering = markdown_footnotes(TEXT, SUPPORTS, PASSAGES)
    body, notes = rendering.text.split("\n\n")
    assert body == "It stands [^1][^2]. It is tall [^1]. It shines [^3]."
    assert notes.splitlines() == [
        r"[^1]: [C\](https://evil.example) \[x](https://c.example/)",
        "[^2]: e.md",
        "[^3]: [A page](https://a.example/x%20y_%28z%29)",
    ]


@given(st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=6))
def test_the_map_takes_the_numbers_back_to_the_chunks(cited: list[set[int]]) -> None:
    text = " ".join(["It ends."] * len(cited))
    supports = [Support(Span(9 * at, 9 * at + 8), tuple(sorted(chunks)), ()) for at, chunks in enumerate(cited)]
    for render in (plain, markdown_footnotes):
        rendering = render(text, supports, PASSAGES)
        assert sorted(rendering.markers) == list(range(1, len(set().union(*cited)) + 1))
        body = rendering.text.split("\n\n")[0]
        statements = parse(body, len(rendering.markers)).statements
        assert [{rendering.markers[chunk + 1] for chunk in s.claim.chunks} for s in statements] == cited
