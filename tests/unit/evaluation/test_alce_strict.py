"""ALCE's rule on our own claims: no quirk of the original is left."""

from __future__ import annotations

import numpy as np
import pytest

from serving.answer.types import Outcome, Passage, Reason, Route
from serving.answer.wire import Answer, CitationOut, ClaimOut, PassageOut, RouteOut, Spans
from serving.evaluation import alce_strict
from serving.evaluation.alce import Credit
from serving.evaluation.estimates import NotApplicable, Score
from serving.evaluation.judgements import Table

PASSAGES = tuple(Passage(id=str(n), text=f"text {n}", title=f"T{n}", heading_path=("Part",)) for n in range(1, 5))


def entails_by(*texts: str) -> alce_strict.Entails:
    return lambda premise, _: any(text in premise for text in texts)


def figures(reply: str, *entailed: str) -> tuple[Score, Score]:
    scored = alce_strict.score(alce_strict.read_reply(reply, PASSAGES), entails_by(*entailed))
    return scored.recall, scored.precision


@pytest.mark.parametrize(
    "reply", ["A fact [1, 2].", "A fact [1-2].", "A fact. [1][2]", "A fact 【1】[2].", "A fact [1][2][1]."]
)
def test_every_way_of_citing_two_passages_is_read_as_two(reply: str) -> None:
    reading = alce_strict.read_reply(reply, PASSAGES)
    assert [claim.chunks for claim in reading.claims] == [(0, 1)]
    assert figures(reply, "text 2") == (1, 0.5)


def test_a_marker_after_the_stop_belongs_to_the_sentence_before() -> None:
    assert figures("A fact. [1] Another one [2].", "text 1") == (0.5, 0.5)


@pytest.mark.parametrize("reply", ["A fact [0].", "A fact [9]."])
def test_a_number_that_names_no_passage_proves_nothing_and_counts(reply: str) -> None:
    assert figures(reply, "text") == (0, 0)
    assert figures(f"{reply} Another one [1].", "text") == (0.5, 0.5)


def test_a_year_and_code_cite_nothing() -> None:
    assert figures("In [2019] it began [1].", "text 1") == (1, 1)
    assert figures("Then a[0]=b[1] holds [1].", "text 1") == (1, 1)


def test_all_lines_are_scored() -> None:
    assert figures("A fact [1].\n\nAnother fact [2].", "text 1") == (0.5, 0.5)


def test_citations_beyond_the_limit_count_against_precision() -> None:
    assert figures("A fact [1][2][3][4].", "text 1\n") == (1, 0.25)


def test_an_answer_that_cites_nothing_has_no_precision() -> None:
    assert figures("A fact.", "text") == (0, NotApplicable.NO_CITATIONS)


def test_a_reply_without_claims_is_not_scored() -> None:
    assert figures("## Heading", "text") == (NotApplicable.NO_STATEMENTS, NotApplicable.NO_STATEMENTS)


def test_premises_are_as_every_model_of_ours_reads_them() -> None:
    assert alce_strict.read_reply("A fact [1].", PASSAGES).premises[0] == "T1 > Part\ntext 1"


def answer(outcome: Outcome, *claims: tuple[str, list[int]]) -> Answer:
    spans = Spans(utf8=(0, 1), code_point=(0, 1), utf16=(0, 1))
    return Answer(
        request_id="r",
        outcome=outcome,
        route=RouteOut(chosen=Route.SINGLE_PASS, ran=Route.SINGLE_PASS, cue=""),
        passages=tuple(PassageOut.of(passage) for passage in PASSAGES),
        claims=tuple(
            ClaimOut(
                text=text,
                span=spans,
                citations=tuple(CitationOut(chunk=chunk, score=1) for chunk in chunks),
                reason=Reason.ENTAILED,
            )
            for text, chunks in claims
        ),
    )


def test_our_own_answer_is_scored_by_its_claims() -> None:
    reading = alce_strict.read(answer(Outcome.ANSWERED, ("One.", [0]), ("Two.", [1, 2]), ("Three.", [3])))
    table = Table(
        {
            ("T1 > Part\ntext 1", "One."): True,
            ("T2 > Part\ntext 2\nT3 > Part\ntext 3", "Two."): True,
            ("T2 > Part\ntext 2", "Two."): False,
            ("T3 > Part\ntext 3", "Two."): False,
            ("T4 > Part\ntext 4", "Three."): False,
        }
    )
    assert set(alce_strict.pairs(reading)) == set(table._judged)
    scored = alce_strict.score(reading, table)
    assert (scored.recall, scored.precision) == (2 / 3, 3 / 4)
    assert scored.claims[1] == Credit(supported=True, credited=2, counted=2)


def test_a_chunk_that_is_no_passage_is_a_fabrication() -> None:
    reading = alce_strict.read(answer(Outcome.ANSWERED, ("One.", [0, 7])))
    assert reading.claims == (alce_strict.Cited("One.", (0,), 1),)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.DECLINED, NotApplicable.DECLINED), (Outcome.SEARCH, NotApplicable.SEARCH)],
)
def test_what_was_not_answered_is_counted_apart(outcome: Outcome, reason: NotApplicable) -> None:
    declined = alce_strict.score(alce_strict.read(answer(outcome)), entails_by())
    right = alce_strict.score(alce_strict.read_reply("A fact [1].", PASSAGES), entails_by("text 1"))
    summary = alce_strict.summarise([declined, right], np.random.default_rng(0))
    assert (summary.recall.value, summary.recall.n, summary.recall.not_applicable) == (1, 1, {reason.value: 1})
    assert (summary.precision.value, summary.precision.n) == (1, 1)
