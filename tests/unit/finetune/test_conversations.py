"""Conversations to learn from: every reply is right by its own passages."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from finetune.citation import conversations as made
from finetune.citation.conversations import Conversation, Passages
from finetune.citation.facts import Facts
from finetune.data import CorpusRow
from serving.answer.citations import parse
from serving.answer.types import Passage
from serving.evaluation.rows import QaRow, RerankRow

POOL = [Passage(id=str(n), title="Pool", text=f"Pool passage number {n} is about nothing at all.") for n in range(20)]
LONG = "Filler words stand here before the fact is told to anyone. " * 20
ANSWERABLE = QaRow.model_validate(
    {
        "id": "q",
        "question": "When was the Eiffel Tower built?",
        "passages": [
            {"title": "Tower", "text": f"{LONG}The Eiffel Tower was built in 1889. {LONG}", "supporting": True},
            {"title": "Tower", "text": "The Eiffel Tower is a tower in Paris.", "supporting": False},
        ],
        "answers": ["1889"],
        "answerable": True,
    }
)
TWO_HOPS = RerankRow.model_validate(
    {
        "id": "h",
        "query": "Were Pekar and Levertov born in one country?",
        "passages": [
            {"title": "Pekar", "text": "Harvey Pekar was born in the United States of America.", "relevance": 1},
            {"title": "Levertov", "text": "Denise Levertov was born in England, not far from London.", "relevance": 1},
            {"title": "Other", "text": "Something else is said of something else in this one.", "relevance": 0},
        ],
    }
)


def passages(seed: int, *, most: int = 5, words: int = 40) -> Passages:
    return Passages(random.Random(seed), POOL, most=most, words=(words, words))


def cited(conversation: Conversation) -> list[tuple[str, tuple[int, ...]]]:
    reply = parse(conversation.reply, len(conversation.passages))
    assert not reply.fabricated
    return [(s.claim.text, s.claim.chunks) for s in reply.statements]


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_an_answer_stands_in_the_passage_it_cites(seed: int, most: int) -> None:
    conversation = made.from_qa(ANSWERABLE, passages(seed, most=most))
    assert conversation is not None
    assert len(conversation.passages) <= most
    assert all(len(passage.text.split()) <= 40 for passage in conversation.passages)
    ((sentence, chunks),) = cited(conversation)
    assert "1889" in sentence
    assert sentence in conversation.passages[chunks[0]].text


@given(st.integers(0, 2**32))
def test_two_hops_cite_two_passages_in_the_order_of_their_numbers(seed: int) -> None:
    conversation = made.from_two_hops(TWO_HOPS, passages(seed))
    assert conversation is not None
    claims = cited(conversation)
    assert len(claims) == 2
    assert claims[0][1] < claims[1][1]
    for sentence, chunks in claims:
        assert sentence in conversation.passages[chunks[0]].text


@given(st.integers(0, 2**32))
def test_without_its_passage_no_passage_holds_the_answer(seed: int) -> None:
    pool = [Passage(id="p", title="Tower", text="It opened in 1889, to be exact."), *made.all_passages([ANSWERABLE])]
    conversation = made.without_its_passage(ANSWERABLE, Passages(random.Random(seed), pool, most=1, words=(40, 40)))
    assert conversation is not None
    assert conversation.declines
    assert not any("1889" in passage.text for passage in conversation.passages)


def test_an_unanswerable_question_is_declined() -> None:
    row = ANSWERABLE.model_copy(update={"answerable": False, "answers": ()})
    conversation = made.from_qa(row, passages(1))
    assert conversation is not None
    assert conversation.declines


def test_a_fact_names_the_place_the_field_and_the_value() -> None:
    rows = [
        CorpusRow(id=f"f{n}", title=place, heading_path=(place, "Economy", field), text=f"{n} km")
        for n, (place, field) in enumerate((p, f) for p in ("Chad", "Peru", "Iran") for f in ("Railways", "Coast"))
    ]
    found = Facts(rows, random.Random(3), most=4).single(1_000)
    assert len(found) == len(rows)
    for conversation in found:
        asked = {row.text for row in rows if row.title in conversation.question}
        shown = {passage.text for passage in conversation.passages}
        if not conversation.declines:
            ((sentence, chunks),) = cited(conversation)
            passage = conversation.passages[chunks[0]]
            assert passage.text in asked & shown
            assert passage.text in sentence
            assert passage.title in sentence


YEARLY = [
    CorpusRow(
        id=f"y{n}",
        title=place,
        heading_path=(place, "Economy", "Exports"),
        text="\n".join([*(f"{y}: ${n}{y - 2020} billion ({y} est.)" for y in (2023, 2022, 2021)), "note: in dollars"]),
    )
    for n, place in enumerate(("Chad", "Peru", "Iran"), start=1)
]


@given(st.integers(0, 2**32))
def test_of_values_of_several_years_the_one_asked_for_or_the_latest_is_told(seed: int) -> None:
    found = Facts(YEARLY, random.Random(seed), most=4).dated(10)
    assert len(found) == 3
    for conversation in found:
        year = next((year for year in ("2023", "2022", "2021") if year in conversation.question), "2023")
        shown = [passage for passage in conversation.passages if passage.text.startswith(year)]
        assert conversation.declines == (not shown)
        if shown:
            ((sentence, chunks),) = cited(conversation)
            assert f"({year} est.)" in sentence
            assert conversation.passages[chunks[0]] == shown[0]


@given(st.integers(0, 2**32))
def test_a_comparison_tells_both_values_each_from_its_own_passage(seed: int) -> None:
    rows = [
        CorpusRow(id=place, title=place, heading_path=(place, "Economy", "Railways"), text=f"{n}00 km")
        for n, place in enumerate(("Chad", "Peru", "Iran"), start=1)
    ]
    found = Facts(rows, random.Random(seed), most=4).compared(3)
    assert len(found) == 3
    for conversation in found:
        claims = cited(conversation)
        assert len(claims) == 2
        for sentence, chunks in claims:
            passage = conversation.passages[chunks[0]]
            assert passage.title in sentence
            assert passage.title in conversation.question
            assert passage.text in sentence


@given(st.integers(0, 2**32))
def test_near_misses_share_the_subject_and_lack_the_answer(seed: int) -> None:
    titled = [
        Passage(id="a", title="Tower", text="The tower opened in 1889."),
        Passage(id="b", title="Tower", text="The tower is made of iron."),
        Passage(id="c", title="Bridge", text="The bridge is made of stone."),
    ]
    found = Passages(random.Random(seed), titled, most=4, words=(40, 40)).near_misses(ANSWERABLE, 4)
    assert [passage.id for passage in found] == ["b"]
