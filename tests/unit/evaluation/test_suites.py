"""Suite files: every format of the data kit, ALCE's JSON, and bad rows named by file and line."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from serving.answer.types import Route
from serving.evaluation import suites
from serving.evaluation.alce import Document
from serving.evaluation.suites import SuiteError

GROUNDING = {"id": "a-0", "document": "Iron rusts.", "claim": "Iron rusts.", "label": 1, "kind": "x"}


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_good_rows_are_kept_and_bad_ones_named_by_file_and_line(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        GROUNDING,
        "",
        "{broken",
        {**GROUNDING, "id": "a-1", "label": 2},
        GROUNDING,
        {**GROUNDING, "id": "a-2", "verdict": 1},
        {**GROUNDING, "id": "a-3", "claim": ""},
        {**GROUNDING, "id": "a-4", "label": "1"},
        {**GROUNDING, "id": "a-5"},
    )
    suite = suites.read_grounding(path)
    assert [row.id for row in suite.rows] == ["a-0", "a-5"]
    assert [bad.line for bad in suite.bad] == [3, 4, 5, 6, 7, 8]
    assert str(suite.bad[0]).startswith(f"{path}:3: ")
    messages = [bad.message for bad in suite.bad]
    assert "JSON" in messages[0]
    assert "label" in messages[1]
    assert "line 1 already" in messages[2]
    assert "verdict" in messages[3]


def test_bytes_that_are_no_text_cost_their_own_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GROUNDING).encode() + b'\n{"id": "\xff"}\n')
    suite = suites.read_grounding(path)
    assert (len(suite.rows), [bad.line for bad in suite.bad]) == (1, [2])


def test_a_compressed_file_that_breaks_off_keeps_what_came_before(tmp_path: Path) -> None:
    whole = "".join(json.dumps({**GROUNDING, "id": f"a-{n}", "kind": str(hash(n))}) + "\n" for n in range(5000))
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(whole.encode())[:-2000])
    suite = suites.read_grounding(path)
    assert 0 < len(suite.rows) < 5000
    assert "breaks off" in suite.bad[-1].message


@pytest.mark.parametrize("content", ["", "{broken\n"])
def test_a_file_without_a_good_row_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    with pytest.raises(SuiteError, match="no good row"):
        suites.read_qa(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="give the path"):
        suites.read_route(tmp_path / "none.jsonl")
    with pytest.raises(SuiteError, match="give the path"):
        suites.read_asqa(tmp_path)


def test_each_format_is_typed(tmp_path: Path) -> None:
    passage = {"text": "Iron rusts.", "supporting": True, "sentences": [{"text": "Iron rusts.", "supporting": True}]}
    question = {"id": "q-0", "question": "Why?", "passages": [passage], "answers": ["rust"], "answerable": True}
    ambiguous = {**question, "id": "q-1", "qa_pairs": [{"question": "Why so?", "answers": ["a", "b"]}]}
    turns = {**question, "id": "q-2", "answers": [], "history": [{"role": "user", "text": "Hello"}]}
    rows = suites.read_qa(lines(tmp_path / "qa", question, ambiguous, turns)).rows
    assert [row.readings() for row in rows] == [(("rust",),), (("a", "b"),), ()]
    assert rows[0].passages[0].sentences[0].supporting
    ranked = {"id": "r-0", "query": "q", "passages": [{"text": "a", "relevance": 2}, {"text": "b", "relevance": 0}]}
    assert suites.read_rerank(lines(tmp_path / "rerank", ranked)).rows[0].grades() == {"0": 2, "1": 0}
    routed = [{"id": f"o-{n}", "query": "q", "route": route, "kind": "k"} for n, route in enumerate(["search", None])]
    assert [row.route for row in suites.read_route(lines(tmp_path / "route", *routed)).rows] == [Route.SEARCH, None]


ALCE_ITEM: dict[str, Any] = {
    "sample_id": "1",
    "question": "Who?",
    "answer": "Somebody.",
    "docs": [{"id": "9", "title": "T", "text": "long text", "sent": "sent", "score": 0.5}, {"title": "U", "text": "u"}],
    "qa_pairs": [{"question": "Who so?", "short_answers": ["he"], "wikipage": None, "context": ""}],
    "annotations": None,
}


def as_results(items: list[Any]) -> dict[str, Any]:
    return {"args": {"data": [1]}, "data": items, "z": 1}


@pytest.mark.parametrize("wrap", [list, as_results])
@pytest.mark.parametrize("indent", [None, 2])
def test_alces_own_files_are_read(tmp_path: Path, wrap: Any, indent: int | None) -> None:
    items = [ALCE_ITEM, {**ALCE_ITEM, "sample_id": "2", "output": ["It is [1].", "no"]}, {"question": 3}]
    path = tmp_path / "asqa.json"
    path.write_text("\n" + json.dumps(wrap(items), indent=indent))
    suite = suites.read_asqa(path)
    first, second = (row.item() for row in suite.rows)
    assert first.docs == (Document("T", "sent"), Document("U", "u"))
    assert first.answers == (("he",),)
    assert (first.output, second.output) == ("", "It is [1].")
    (bad,) = suite.bad
    text = path.read_text()
    assert bad.line == text[: text.rindex("{", 0, text.index('"question": 3'))].count("\n") + 1
    assert "question" in bad.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{}, oops]", ":1: not JSON"),
        ("3", "neither a list"),
        ('{"data": {}}', "neither a list"),
        ("[]", "no good row"),
    ],
)
def test_what_is_not_alces_json_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "asqa.json"
    path.write_text(content)
    with pytest.raises(SuiteError, match=message):
        suites.read_asqa(path)


READERS = {
    "qa": suites.read_qa,
    "grounding": suites.read_grounding,
    "rerank": suites.read_rerank,
    "route": suites.read_route,
}


@pytest.mark.parametrize("name", READERS)
def test_the_whole_data_kit_reads_without_a_bad_row(name: str) -> None:
    beside = Path(__file__).parents[4] / "shared" / "data"
    folder = Path(os.environ.get("ANSWER_EVAL_DATA", beside)) / name
    if not folder.is_dir():
        pytest.skip("needs the shared data kit; set ANSWER_EVAL_DATA to its folder")
    files = sorted(folder.glob("*.jsonl.gz"))
    assert len(files) > 5
    for path in files:
        suite = READERS[name](path)
        assert suite.bad == ()
        with gzip.open(path) as rows:
            assert len(suite.rows) == sum(1 for _ in rows)


def test_answerability_is_read_from_bare_questions_and_from_qa_rows(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(
        '{"question": "a?", "answerable": true}\n'
        '{"question": "a?", "answerable": false}\n'  # without ids nothing is a repeat
        '{"id": "q-1", "question": "b?", "answerable": false, "answers": [], "passages": [{"text": "t"}]}\n'
        '{"id": "q-1", "question": "c?", "answerable": true}\n'
        '{"question": "d?", "answerable": 1}\n'
        '{"question": "e?", "answerable": true, "label": 1}\n'
    )
    suite = suites.read_answerability(path)
    assert [(row.question, row.answerable, len(row.passages)) for row in suite.rows] == [
        ("a?", True, 0),
        ("a?", False, 0),
        ("b?", False, 1),
    ]
    assert [bad.line for bad in suite.bad] == [4, 5, 6]
