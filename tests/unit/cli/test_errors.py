"""``answer errors``: the table of codes, for people and for programs."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from serving.answer.codes import CODES, TABLE, Code
from serving.cli.main import app


def errors(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["errors", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_each_code_is_explained(code: Code) -> None:
    for arguments in ((), (code.name,)):
        status, said = errors(*arguments)
        assert status == 0
        assert f"{code.name}  {code.status}, " in said
        assert code.means in said
        assert code.remedy in said
        assert code.example in said


def test_json_is_the_whole_table() -> None:
    status, said = errors("--json")
    assert status == 0
    assert [Code(**row) for row in json.loads(said)] == list(CODES)


def test_one_code_is_that_alone() -> None:
    assert [row["name"] for row in json.loads(errors("overloaded", "--json")[1])] == ["overloaded"]
    assert "deadline_exceeded" not in errors("overloaded")[1]


def test_a_code_that_is_none() -> None:
    status, said = errors("overlaoded")
    assert status == 2
    assert "`answer errors`" in said
    assert "overlaoded" not in TABLE
