"""The table of codes, against every error there is in the code."""

from __future__ import annotations

import pytest

from serving.answer.codes import CODES, TABLE, Code
from serving.answer.errors import AnswerError

from .error_kinds import kinds

KINDS = kinds()


def test_they_are_those_of_all_layers() -> None:
    assert {"serving.answer.errors", "models.errors"} <= {kind.__module__ for kind in KINDS}
    assert len(KINDS) > 25


def test_each_code_is_one_errors_own() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)
    assert set(codes) == set(TABLE)  # a row that nothing raises would be a promise that nobody keeps


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_is_what_its_row_says(kind: type[AnswerError]) -> None:
    row = TABLE[kind.code]
    assert (kind.status, kind.retryable) == (row.status, row.retryable)


def test_an_error_without_a_row_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="BrandNewError has the code 'brand_new': add its row"):
        type("BrandNewError", (AnswerError,), {"code": "brand_new"})


def test_an_error_without_a_code_of_its_own_has_its_parents() -> None:
    kind = type("NarrowerError", (AnswerError,), {})
    assert (kind.code, kind.status) == ("internal", 500)


@pytest.mark.parametrize("row", CODES, ids=lambda row: row.name)
def test_a_row_says_all_and_says_it_plainly(row: Code) -> None:
    assert 400 <= row.status < 600
    assert row.name == row.name.lower()
    assert row.means.endswith(".")
    assert row.remedy.endswith(".")
    assert row.example
    assert not row.waits or row.retryable
    assert row.status not in {408, 429} or row.retryable


def test_names_are_unique() -> None:
    assert len(TABLE) == len(CODES)
