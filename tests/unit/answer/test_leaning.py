"""Which sentences lean on the one before them, and into which facts a claim is split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.conjuncts import MOST, facts
from serving.answer.leaning import LONGEST_CHAIN, in_context, leans


@pytest.mark.parametrize(
    ("sentence", "does"),
    [
        ("It was built there.", True),
        ("They left.", True),
        ("This is why.", True),
        ("Its roof is red.", True),
        ("These towers fell.", True),
        ("The former is older.", True),
        ("However, she stayed.", True),
        ("In 1889 it was opened.", True),
        ("After that, they moved on.", True),
        ("In the IT department.", True),
        ("Such towers are rare.", True),
        ("The tower was built in 1889.", False),
        ("It is known that iron rusts.", False),
        ("There are two towers.", False),
        ("Those who wait are served.", False),
        ("In Paris the tower was built.", False),
        ("Both iron and steel rust.", False),
        ("", False),
        ("、。", False),
    ],
)
def test_leaning(sentence: str, does: bool) -> None:
    assert leans(sentence) is does


def test_context_is_the_block_s_own_and_runs_back_to_a_claim_that_stands_alone() -> None:
    reply = parse("The tower is old [1]. It is tall [1]. It is red [1].\n\nIt is new [2].\n\n- It is wet [1].", 3)
    assert [s.claim.context for s in in_context(reply.statements)] == [
        "",
        "The tower is old.",
        "The tower is old. It is tall.",
        "",
        "",
    ]


def test_a_long_chain_keeps_the_nearest_claim() -> None:
    reply = parse("The tower is old [1]. " + "It is tall, they say [1]. " * 200, 3)
    assert all(len(s.claim.context) <= LONGEST_CHAIN for s in in_context(reply.statements))
    assert in_context(reply.statements)[-1].claim.context.endswith("It is tall, they say.")


@given(st.text(max_size=400))
def test_any_reply_can_be_put_in_context(text: str) -> None:
    statements = parse(text, 3).statements
    found = in_context(statements)
    assert [s.claim.text for s in found] == [s.claim.text for s in statements]


@pytest.mark.parametrize(
    ("claim", "parts"),
    [
        ("X was built in 1889 and is 330 m tall.", ("X was built in 1889.", "X is 330 m tall.")),
        ("The tower is old and the museum is new.", ("The tower is old.", "the museum is new.")),
        ("Paris is big; Rome is old.", ("Paris is big.", "Rome is old.")),
        (
            "He was born in Paris, was raised in Rome and has died.",
            ("He was born in Paris.", "He was raised in Rome.", "He has died."),
        ),
        ("The flag is black and white.", None),
        ("Iron and steel are metals.", None),
        ("If A is on and B is off, C is hot.", None),
        ("She says that A is on and B is off.", None),
        ("It is between 5 and 6 and is red.", None),
        ('He was called "old and is young" there.', None),
    ],
)
def test_facts(claim: str, parts: tuple[str, ...] | None) -> None:
    assert facts(claim) == (parts or (claim,))


@given(
    st.text(max_size=300) | st.lists(st.sampled_from("a is and, was ; red X while the but if".split())).map(" ".join)
)
def test_a_claim_has_one_to_four_facts_and_no_word_is_lost(claim: str) -> None:
    parts = facts(claim)
    assert 1 <= len(parts) <= MOST
    joiners = set("and while but ; ,".split())
    words = {word.strip(".!?,;") for word in claim.split()} - joiners - {""}
    assert words <= {word.strip(".!?,;") for part in parts for word in part.split()}
