"""What pair encoders learn from: claims that stay true, claims made false, and what stands beside what."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finetune.data import CorpusRow
from finetune.pairs import bearing, claiming, paraphrasing, ranking
from finetune.pairs.declaring import declared
from finetune.pairs.falsifying import CHANGES, falsified
from finetune.pairs.groups import around, focus, is_statement, sentences
from serving.answer.types import Passage
from serving.evaluation.rows import GroundingRow, QaRow, RerankRow

TOWER = "The old tower was built by Alice Moss in 1954. It has 20 floors. Bob Reed painted it in 1960 if asked."


def rng(seed: int = 3) -> random.Random:
    return random.Random(seed)


@pytest.mark.parametrize(
    ("rewrite", "sentence", "told"),
    [
        ("in_active_voice", "The tower was built by Alice Moss in 1954.", "Alice Moss built the tower in 1954."),
        ("without_brackets", "Ann (born 1950) sings [3] well.", "Ann sings well."),
        ("without_beginning", "In the spring of 1999, the mill closed.", "The mill closed."),
        ("without_end", "The mill closed, which surprised many.", "The mill closed."),
        ("without_aside", "The mill, a tall house, was closed.", "The mill was closed."),
        ("in_number_words", "It has 3 rooms.", "It has three rooms."),
        ("in_number_words", "It has three rooms.", "It has 3 rooms."),
        ("in_number_words", "It is 3.5 km long.", "It is 3.5 km long."),
        ("in_synonyms", "The film began.", "The movie started."),
    ],
)
def test_a_rewrite_says_the_same_otherwise(rewrite: str, sentence: str, told: str) -> None:
    assert getattr(paraphrasing, rewrite)(sentence, rng()) == told


def test_what_restricts_is_never_left_out() -> None:
    sentence = "In the spring of 1999, only the mill was not closed, which surprised many."
    for seed in range(40):
        made = paraphrasing.paraphrase(sentence, "", rng(seed))
        assert "1999" in made
        assert "surprised" in made


def test_a_pronoun_may_become_the_title() -> None:
    made = {paraphrasing.paraphrase("It is a tall tower.", "Moss Tower", rng(seed)) for seed in range(20)}
    assert {"It is a tall tower.", "Moss Tower is a tall tower."} <= made


@pytest.mark.parametrize(
    ("kind", "claim", "false"),
    [
        ("other value", "It has 20 floors.", "It has 35 floors."),
        ("name", "It was built by Alice Moss.", "It was built by Bob Reed."),
        ("roles", "Alice Moss taught Bob Reed.", "Bob Reed taught Alice Moss."),
        ("quantifier", "Most towers are old.", None),
        ("quantifier", "There most towers are old.", "There all towers are old."),
        ("condition", "The old pump starts if the tank is empty.", "The old pump starts."),
        ("condition", "Critics claimed that the pump is loud.", "The pump is loud."),
        ("condition", "The pump may be loud.", "The pump is loud."),
    ],
)
def test_a_change_makes_a_claim_false_in_one_way(kind: str, claim: str, false: str | None) -> None:
    evidence = "There was Bob Reed. It had 35 rooms."
    made = [text for text in CHANGES[kind][0](claim, evidence, ["Carol Lane"], rng()) if text != claim]
    assert (false in made) if false else (made == [])


@given(st.integers(0, 10**6))
def test_what_is_falsified_differs_and_does_not_stand_in_the_evidence(seed: int) -> None:
    for claim in sentences(TOWER):
        made = falsified(claim, TOWER, ["Carol Lane"], rng(seed), 3)
        assert len({kind for _, kind in made}) == len(made)
        assert all(text != claim and text not in TOWER for text, _ in made)


@pytest.mark.parametrize(
    ("question", "answer", "claim"),
    [
        ("Who designed the tower?", "Alice", "Alice designed the tower."),
        ("What company made the first pump?", "Acme", "Acme made the first pump."),
        ("When was the old mill founded?", "1954", "The old mill was founded in 1954."),
        ("How many people live in the village?", "200", "200 people live in the village."),
        ("Who did Alice meet there?", "Bob", None),
        ("Why is the sky blue?", "scattering", None),
    ],
)
def test_a_question_and_its_answer_make_a_statement(question: str, answer: str, claim: str | None) -> None:
    assert declared(question, answer) == claim


@given(st.lists(st.integers(1, 30), min_size=1, max_size=9), st.data(), st.integers(1, 60))
def test_what_stands_around_a_sentence_holds_it_and_keeps_to_its_length(
    lengths: list[int], data: st.DataObject, words: int
) -> None:
    told = [" ".join([f"s{number}"] * length) for number, length in enumerate(lengths)]
    at = data.draw(st.integers(0, len(told) - 1))
    near = around(told, at, words, rng())
    first = told.index(near[0])
    assert near == told[first : first + len(near)]
    assert told[at] in near
    assert len(near) == 1 or sum(len(one.split()) for one in near) <= words


def test_focus_is_where_the_claim_is_spoken_of() -> None:
    text = "One thing is here. " * 30 + "The blue heron eats small fish. " + "Other things are there. " * 30
    found = focus(text, "What does the heron eat?", 20)
    assert "heron" in found
    assert len(found.split()) <= 20
    assert focus("short text", "claim", 20) == "short text"


def test_statements_are_whole_sentences() -> None:
    assert is_statement("The old tower has 20 floors.")
    assert not is_statement("See also.")
    assert not is_statement("The following towers are listed here:")


def test_claims_over_a_passage_are_true_and_nearly_true() -> None:
    passages = [Passage(id=str(n), title=f"Tower {n}", text=TOWER) for n in range(30)]
    groups = list(claiming.from_passages(passages, 20, 60, rng(), "made"))
    assert len(groups) == 20
    for group in groups:
        assert {row.label for row in group.rows} == {True, False}
        assert len({(row.document, row.settled, row.label) for row in group.rows}) >= 2
        both = {(row.document, row.settled) for row in group.rows if row.label}
        assert not both & {(row.document, row.settled) for row in group.rows if not row.label}


def test_labelled_claims_of_one_document_stand_together() -> None:
    rows = [
        GroundingRow(id=str(n), document="A." if n < 5 else "B.", claim=f"claim {n}", label=n % 2) for n in range(7)
    ]
    groups = list(claiming.from_labels(rows, 50, "kit"))
    assert [len(group.rows) for group in groups] == [4, 1, 2]
    assert [row.label for group in groups for row in group.rows] == [False, True] * 3 + [False]


def ranked() -> RerankRow:
    wrong = [{"title": f"W{n}", "text": f"Nothing number {n}.", "relevance": 0} for n in range(9)]
    right = {"title": "R", "text": "Alice built it.", "relevance": 1}
    return RerankRow.model_validate({"id": "r", "query": "Who built it?", "passages": [*wrong, right]})


def test_a_right_passage_stands_beside_hard_wrong_ones() -> None:
    (group,) = ranking.from_ranked([ranked()], 3, 50, rng(), "kit")
    assert [row.label for row in group.rows] == [True, False, False, False]
    assert group.rows[0].document == "R\nAlice built it."
    assert all(int(row.document[1]) < 6 for row in group.rows[1:])


def qa(question: str, answers: list[str]) -> QaRow:
    passage = {"title": "Tower", "text": TOWER}
    return QaRow.model_validate(
        {"id": question, "question": question, "passages": [passage], "answers": answers, "answerable": bool(answers)}
    )


def test_the_sentence_with_the_answer_stands_beside_its_neighbours() -> None:
    (group,) = ranking.from_sentences([qa("How many floors does the tower have?", ["20"])], 2, rng())
    assert [row.label for row in group.rows] == [True, False, False]
    assert "20 floors" in group.rows[0].document


def test_impossible_questions_are_wrong_for_their_nearest_sentence() -> None:
    rows = [qa("How many floors does the tower have?", ["20"]), qa("How many floors did Bob Reed build?", [])]
    found = [row for group in bearing.from_questions(rows, rng()) for row in group.rows]
    assert all(not row.label for row in found if row.settled == rows[1].question)
    right = [row for row in found if row.label]
    assert [(row.settled, "20 floors" in row.document) for row in right] == [(rows[0].question, True)]


def test_a_fact_stands_beside_other_fields_and_other_places() -> None:
    rows = [
        CorpusRow(id=f"{place}-{field}", title=place, heading_path=(place, "People", field), text=f"{place} {field} 5")
        for place in ("Aland", "Bland")
        for field in ("Area", "Coast")
    ]
    groups = list(bearing.from_facts(rows, 4, rng()))
    assert len(groups) == 4
    for group in groups:
        assert [row.label for row in group.rows].count(True) == 1
        right = next(row for row in group.rows if row.label)
        assert all(word.lower() in right.settled.lower() for word in right.document.splitlines()[-1].split()[:2])
