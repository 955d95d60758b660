"""The legacy mode against the numbers that the original gives, and each of the original's quirks by name.

``alce_golden.json`` holds what ALCE's own program gave for the cases of ``alce_cases``; ``alce_peer`` says how.
"""

from __future__ import annotations

import json
import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.evaluation import alce_legacy
from serving.evaluation.alce import Document, Item
from serving.evaluation.judgements import MissingJudgementError, Table
from serving.evaluation.strings import legacy_presence, normalise_answer
from tests.unit.evaluation.alce_cases import Case, cases, coin, split
from tests.unit.evaluation.alce_peer import GOLDEN, HOW_TO, Figures, Peer, found

DOCS = tuple(Document(f"T{n}", f"text {n}") for n in range(1, 4))

FRAGMENTS = (
    """Fact| b| [1]|[2]|[3]|[0]|[4]| [1, 2]|[1-3]|[1][1]|a[0]=b[1]|【1】|[^1]|]|. |.|! |[２]| the|,|é|In [2019]"""
)
fragments = st.sampled_from([*FRAGMENTS.split("|"), "<|im_end|>", " |", "\n"])
outputs = st.lists(fragments, max_size=14).map("".join)
answers = st.lists(st.lists(st.sampled_from(["Fact", "b", "the", "zz", "É"]), min_size=1, max_size=2), min_size=1)
items = st.builds(lambda output, readings: Item("Who?", output, DOCS, tuple(map(tuple, readings))), outputs, answers)


def scored(case: Case) -> Figures:
    """Our figures in the form of the original's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the original takes means of nothing
        result = alce_legacy.score(case.items, coin, split, at_most=case.at_most)
    cited = alce_legacy.citations(case.items, coin, split, at_most=case.at_most, qampari=case.qampari)
    shares = None
    if cited.multi_cited and cited.multi_cited_supported:
        parts = (
            cited.multi_cited / cited.sentences,
            cited.multi_cited_supported / cited.multi_cited,
            cited.overcited / cited.multi_cited_supported,
        )
        shares = [float(f"{100 * part:.2f}") for part in parts]
    return {
        "length": result.length,
        "str_em": result.str_em,
        "str_hit": result.str_hit,
        "citation_rec": cited.recall,
        "citation_prec": cited.precision,
        "shares": shares,
    }


def differing(ours: Figures, theirs: Figures) -> dict[str, tuple[object, object]]:
    def same(one: object, other: object) -> bool:
        both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
        return both_nan or one == other

    return {name: (ours[name], theirs[name]) for name in theirs if not same(ours[name], theirs[name])}


GIVEN: dict[str, Figures] = json.loads(GOLDEN.read_text())


def test_the_numbers_are_of_these_cases() -> None:
    assert list(GIVEN) == [case.name for case in cases()]
    assert len({json.dumps(figures) for figures in GIVEN.values()}) > 30


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_figure_is_the_originals_to_the_bit(case: Case) -> None:
    assert differing(scored(case), GIVEN[case.name]) == {}


@pytest.fixture(scope="module")
def peer() -> Peer:
    original = found()
    if original is None:
        pytest.skip(HOW_TO)
    return original


def test_any_figure_is_the_originals_to_the_bit(peer: Peer) -> None:
    @given(st.lists(items, min_size=1, max_size=8), st.sampled_from([None, 1, 2, 3]), st.booleans())
    def compare(data: list[Item], at_most: int | None, qampari: bool) -> None:
        case = Case("", tuple(data), at_most=at_most, qampari=qampari)
        theirs = peer.figures(case.items, coin, at_most=at_most, qampari=qampari)
        assert differing(scored(case), theirs) == {}

    compare()


def test_answers_are_normalised_as_the_original_does(peer: Peer) -> None:
    # Found as a substring both ways: the two normal forms are one.
    @given(st.text(max_size=40))
    def compare(text: str) -> None:
        case = Case("", (Item("Who?", normalise_answer(text) or "x", DOCS, ((text,),)),))
        assert differing(scored(case), peer.figures(case.items, coin)) == {}

    compare()


def test_normal_forms() -> None:
    assert normalise_answer(" The  A-Team, an ÉTUDE!") == "ateam étude"
    assert normalise_answer("theatre an a the") == "theatre"
    assert normalise_answer("U.S. the_a") == "us thea"


@given(st.lists(items, min_size=1, max_size=4))
def test_a_table_of_the_listed_pairs_is_enough(data: list[Item]) -> None:
    table = Table({pair: bool(coin(*pair)) for pair in alce_legacy.pairs(data, split)})
    by_table = alce_legacy.citations(data, table, split)
    by_function = alce_legacy.citations(data, coin, split)
    assert by_table.recalls == by_function.recalls
    assert by_table.precisions == by_function.precisions


def test_a_missing_judgement_is_an_error_and_not_a_no() -> None:
    with pytest.raises(MissingJudgementError, match="pairs"):
        alce_legacy.citations([Item("", "Fact [1].", DOCS)], Table({}), split)


@pytest.mark.parametrize(
    ("text", "refs", "left"),
    [
        ("Fact [1][2].", [0, 1], "Fact."),
        ("Fact [1, 2].", [0], "Fact, 2."),
        ("Fact [1-3].", [0], "Fact-3."),
        ("Fact [0].", [-1], "Fact."),
        ("In [2019] it was [2].", [2018, 1], "In it was."),
        ("a[0]=b[1]", [-1, 0], "a=b"),
        ("Fact【1】.", [], "Fact【1】."),
        ("Fact [^1].", [], "Fact [^1."),
        ("Fact [1][1].", [0, 0], "Fact."),
        ("x ]y", [], "x y"),
        ("one | two", [], "one two"),
    ],
)
def test_markers_are_read_as_the_original_reads_them(text: str, refs: list[int], left: str) -> None:
    assert alce_legacy.references(text) == refs
    assert alce_legacy.remove_citations(text) == left


def figures(output: str, entailed: set[str], docs: tuple[Document, ...] = DOCS) -> tuple[float, float]:
    """Recall and precision of one output, where a premise entails everything if it holds one of these texts."""
    result = alce_legacy.citations(
        [Item("", output, docs)], lambda premise, _: any(text in premise for text in entailed), split
    )
    return result.recall, result.precision


def test_zero_cites_the_last_document() -> None:
    assert figures("Fact [0].", {"text 3"}) == (100, 100)
    assert figures("Fact [0].", {"text 1"}) == (0, 0)


def test_zero_without_documents_fails_as_the_original_does() -> None:
    with pytest.raises(IndexError):
        figures("Fact [0].", {"text 1"}, docs=())


def test_a_number_out_of_range_voids_its_sentence_and_leaves_precision_alone() -> None:
    assert figures("Fact [1][9]. Other [1].", {"text 1"}) == (50, 100)


def test_a_citation_list_loses_all_but_the_first() -> None:
    assert figures("Fact [1, 2].", {"text 2"}) == (0, 0)


def test_a_repeated_citation_counts_twice() -> None:
    # Together they are one premise written twice, which the grader may take where it does not take it once.
    twice = "Title: T1\ntext 1\nTitle: T1\ntext 1"
    assert figures("Fact [1][1]. Other [2].", {twice, "text 2"}) == (100, 100)
    assert figures("Fact [1][1]. Other [2].", {"text 2"}) == (50, pytest.approx(100 / 3))


def test_a_marker_after_the_full_stop_goes_to_the_next_sentence() -> None:
    assert figures("Fact. [1] Next.", {"text 1"}) == (50, 100)


def test_code_is_counted_as_citing() -> None:
    assert figures("Then a[0]=b[1].", {"text 3"}) == (100, 50)


def test_an_irrelevant_citation_is_one_the_others_do_without() -> None:
    assert figures("Fact [1][2].", {"text 1"}) == (100, 50)


def test_a_citation_needed_by_the_set_is_credited_though_it_proves_nothing_alone() -> None:
    assert figures("Fact [1][2].", {"text 1\nTitle: T2\ntext 2"}) == (100, 100)


def test_citations_after_the_third_do_not_count() -> None:
    docs = (*DOCS, Document("T4", "text 4"))
    assert figures("Fact [1][2][3][4].", {"text 4"}, docs) == (0, 0)


def test_only_the_first_line_is_scored() -> None:
    assert figures("\n Fact [1].\nOther.", {"text 1"}) == (100, 100)


def test_an_empty_output_is_left_out_of_both_means() -> None:
    data = [Item("", "", DOCS), Item("", "Fact [1].", DOCS)]
    result = alce_legacy.citations(data, lambda *_: True, split)
    assert (result.recall, result.precision, result.scored) == (100, 100, (1,))


def test_a_decline_in_words_scores_zero() -> None:
    assert figures("The documents do not say.", {"text 1"}) == (0, 0)


def test_answers_are_found_inside_words_and_an_article_everywhere() -> None:
    assert legacy_presence(["he"], "the shelf")
    assert legacy_presence(["The"], "anything")
