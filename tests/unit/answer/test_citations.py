"""The parser: markers out, claims and their chunks in, and back again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.rebuilding import rebuild
from serving.answer.statements import Block


def claims(reply: str, passages: int = 3) -> list[tuple[str, tuple[int, ...]]]:
    return [(s.claim.text, s.claim.chunks) for s in parse(reply, passages).statements]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Fact one [1].", [("Fact one.", (0,))]),
        ("Fact one [1][2].", [("Fact one.", (0, 1))]),
        ("Fact one [1, 2].", [("Fact one.", (0, 1))]),
        ("Fact one [2,1].", [("Fact one.", (0, 1))]),
        ("Fact one [1;3].", [("Fact one.", (0, 2))]),
        ("Fact one [1-3].", [("Fact one.", (0, 1, 2))]),
        ("Fact one [1–3].", [("Fact one.", (0, 1, 2))]),
        ("Fact one [1][1].", [("Fact one.", (0,))]),
        ("Fact one. [1] Fact two. [2]", [("Fact one.", (0,)), ("Fact two.", (1,))]),
        ("Fact one.[1] Fact two.[2]", [("Fact one.", (0,)), ("Fact two.", (1,))]),
        ("Fact one.[1]Fact two.[2]", [("Fact one.", (0,)), ("Fact two.", (1,))]),
        ("Fact one[1]. Fact two[2][3].", [("Fact one.", (0,)), ("Fact two.", (1, 2))]),
        ("Fact one[1] goes on.", [("Fact one goes on.", (0,))]),
        ("Fact one [1]goes on.", [("Fact one goes on.", (0,))]),
        ("Fact one (see [1]) ends.", [("Fact one (see) ends.", (0,))]),
        ('He said "stop [1]." Then he left [2].', [('He said "stop."', (0,)), ("Then he left.", (1,))]),
        ('He said "stop." [1] Then he left.', [('He said "stop."', (0,)), ("Then he left.", ())]),
        ("Pi is 3.14 [1]. It is old [2].", [("Pi is 3.14.", (0,)), ("It is old.", (1,))]),
        ("Version 1.2.3 of os.path.join [1].", [("Version 1.2.3 of os.path.join.", (0,))]),
        ("Fact one\n[1]\nFact two [2].", [("Fact one", (0,)), ("Fact two.", (1,))]),
        ("[1] Fact one [2].", [("Fact one.", (1,))]),
    ],
)
def test_markers_belong_to_the_sentence_they_stand_in_or_follow(
    reply: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert claims(reply) == expected


@pytest.mark.parametrize(
    ("reply", "fabricated"),
    [
        ("Fact [0].", ("0",)),
        ("Fact [4].", ("4",)),
        ("Fact [1][9].", ("9",)),
        ("Fact [1, 9].", ("9",)),
        ("Fact [2-9].", ("2-9",)),
        ("Fact [3-1].", ("3-1",)),
        ("Fact [123456789012345678901234567890].", ("1234567890123456",)),
    ],
)
def test_citations_of_what_was_not_given_are_fabricated(reply: str, fabricated: tuple[str, ...]) -> None:
    parsed = parse(reply, 3)
    assert parsed.fabricated == fabricated
    assert parsed.text == "Fact."
    assert parsed.statements[0].claim.fabricated == fabricated


def test_a_bracketed_year_is_removed_and_reported_and_fabricates_nothing() -> None:
    parsed = parse("It was built [2019] here [1].", 3)
    assert parsed.text == "It was built here."
    assert parsed.years == ("2019",)
    assert parsed.fabricated == ()


def test_spans_are_utf8_bytes_of_the_clean_text() -> None:
    parsed = parse("Ünïcode 日本🇯🇵 [1]. Next é [2].", 2)
    data = parsed.text.encode()
    assert [data[s.claim.span.start : s.claim.span.end].decode() for s in parsed.statements] == [
        "Ünïcode 日本🇯🇵.",
        "Next é.",
    ]


def test_repeated_sentences_get_different_spans() -> None:
    first, second = parse("Same thing [1]. Same thing [2].", 2).statements
    assert first.claim.text == second.claim.text
    assert first.claim.span.end < second.claim.span.start


def test_list_items_are_blocks_of_their_own_and_headings_and_code_are_told_apart() -> None:
    parsed = parse("# Title\n\nIntro [1].\n\n- one [1].\n- two [2].\n\n```\ncode\n```\n\n| a | b |\n", 2)
    assert [s.kind for s in parsed.statements] == [
        Block.HEADING,
        Block.PARAGRAPH,
        Block.ITEM,
        Block.ITEM,
        Block.CODE,
        Block.TABLE,
    ]


def test_an_unfinished_last_sentence_is_known_as_such() -> None:
    whole, tail = parse("It ends here [1]. It is cut off in the", 1).statements
    assert whole.claim.complete
    assert not tail.claim.complete


def test_rebuild_joins_survivors_with_separators_of_its_own() -> None:
    parsed = parse("One [1]. Two [1].\n\n- a item [1].\n- b item [1].\n- c item [1].\n\nLast [1].", 1)
    survivors = [s for s in parsed.statements if s.claim.text not in {"One.", "b item."}]
    rebuilt = rebuild(survivors, 1)
    assert rebuilt.text == "Two.\n\n- a item.\n- c item.\n\nLast."
    data = rebuilt.text.encode()
    assert [data[p.span.start : p.span.end].decode() for p in rebuilt.placed] == [s.claim.text for s in survivors]


def test_a_list_of_which_one_item_is_left_is_no_list() -> None:
    parsed = parse("- a item [1].\n- b item [1].", 1)
    assert rebuild(parsed.statements[:1], 1).text == "a item."


MARKUP = st.text(alphabet=st.sampled_from(list("ab .[]0123,-–;`\n*#|\"'!?。é日🇯_=()$>\\\ue200\ue201")), max_size=120)


@given(MARKUP | st.text(max_size=120), st.integers(0, 12))
def test_any_reply_parses_to_ordered_disjoint_spans_that_read_as_their_text(reply: str, passages: int) -> None:
    parsed = parse(reply, passages)
    data = parsed.text.encode()
    end = 0
    for statement in parsed.statements:
        span = statement.claim.span
        assert end <= span.start < span.end <= len(data)
        assert data[span.start : span.end].decode() == statement.claim.text
        assert all(0 <= chunk < passages for chunk in statement.claim.chunks)
        assert list(statement.claim.chunks) == sorted(set(statement.claim.chunks))
        end = span.end
    rebuilt = rebuild(parsed.statements, passages)
    for placed in rebuilt.placed:
        assert rebuilt.text.encode()[placed.span.start : placed.span.end].decode() == (
            parsed.statements[placed.index].claim.text
        )
