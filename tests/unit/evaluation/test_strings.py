"""Reference answers found as strings."""

from __future__ import annotations

import math

import pytest

from serving.evaluation.estimates import NotApplicable
from serving.evaluation.strings import answer_share, exact_match, legacy_str_em


def test_exact_match_ignores_case_punctuation_and_articles() -> None:
    assert exact_match("The  Beatles!", "beatles")
    assert not exact_match("Beatles", "Beatle")


def test_answers_are_whole_words() -> None:
    assert answer_share("the shelf", [["he"]]) == 0
    assert answer_share("It was he.", [["he"]]) == 1


def test_a_share_is_of_readings_and_any_of_their_answers_will_do() -> None:
    assert answer_share("In 1912 it sank.", [["1912", "the year 1912"], ["Titanic"]]) == 0.5


@pytest.mark.parametrize("readings", [[], [[]], [["the"]], [["", "!"]]])
def test_without_an_answer_to_look_for_there_is_no_share(readings: list[list[str]]) -> None:
    assert answer_share("the text", readings) is NotApplicable.NO_REFERENCE


def test_an_answer_of_nothing_is_not_found_everywhere() -> None:
    assert answer_share("text", [["the", "word"]]) == 0


def test_a_hit_needs_every_reading() -> None:
    assert legacy_str_em(["a1 b1", "a1"], [[["a1"], ["b1"]], [["a1"], ["b1"]]]) == (75, 50)


def test_the_first_item_decides_whether_there_are_readings() -> None:
    assert legacy_str_em(["x"], [None]) == (0, 0)
    with pytest.raises(ValueError, match="qa_pairs"):
        legacy_str_em(["x", "x"], [[["x"]], None])


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
def test_an_item_without_readings_makes_it_nan() -> None:
    assert math.isnan(legacy_str_em(["x", "x"], [[["x"]], []])[0])
