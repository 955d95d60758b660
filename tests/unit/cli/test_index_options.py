"""``answer index``: what its options make of the inputs, what it says, and what it writes."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from serving.answer.types import Passage
from serving.cli import indexing, main
from serving.retrieval.changes import Given
from serving.retrieval.chunking import passages
from serving.retrieval.documents import Document
from serving.retrieval.sources.options import Dates, Format, Options
from serving.settings import Settings, SettingsError, parse

TEXT = "The text of a page that is long enough to be one by itself."


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Passage]:
    """What would have been indexed: nothing is embedded here."""
    found: list[Passage] = []

    def fake_index(given: Iterable[Given], *_: object, **__: object) -> SimpleNamespace:
        documents = [item for one in given for item in one.items if isinstance(item, Document)]
        found.extend(passage for document in documents for passage in passages(document))
        if not found:
            raise ValueError("nothing to index")
        return SimpleNamespace()

    monkeypatch.setattr(indexing, "index_given", fake_index)
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path / "home"))
    return found


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options that would have been read with."""
    seen: list[Options] = []
    monkeypatch.setattr(indexing, "index_sources", lambda _inputs, options, *_, **__: seen.append(options))
    return seen


def index(*arguments: str | Path, **more: Any) -> Result:
    return CliRunner().invoke(main.app, ["index", *map(str, arguments)], prog_name="answer", **more)


def test_a_folder_is_indexed_and_what_was_passed_over_is_said_and_written(
    indexed: list[Passage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("---\ndate: 2024-01-02\n---\n# A\n\nText.")
    (docs / "b.md").touch()
    (docs / "c.jsonl").write_text('{"text": "Row."}\n{}\n')
    monkeypatch.chdir(docs)
    result = index(".", "--report", "report.jsonl")
    assert result.exit_code == 0, result.output
    assert [(passage.text, passage.title) for passage in indexed] == [("Text.", "A"), ("Row.", "")]
    assert "read 2 documents; passed over: 1 empty (b.md)" in result.stderr
    assert "each is named in report.jsonl" in result.stderr
    report = [json.loads(line) for line in (docs / "report.jsonl").read_text().splitlines()]
    assert [(line["path"], line["reason"]) for line in report] == [("b.md", "empty"), ("c.jsonl:2", "bad_row")]
    # The report itself is no input, also not the second time.
    assert index(".", "--report", "report.jsonl").exit_code == 0
    assert (docs / "report.jsonl").read_text().count("\n") == 2


def test_standard_input(indexed: list[Passage]) -> None:
    result = index("-", "--name", "wiki", "--format", "html", input=f"<main><h1>Head</h1><p>{TEXT}</p></main>")
    assert result.exit_code == 0, result.output
    assert [(passage.source, passage.title, passage.text) for passage in indexed] == [("wiki", "Head", TEXT)]


def test_what_was_passed_over_is_said_also_when_nothing_is_left(indexed: list[Passage], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    result = index(tmp_path / "a.txt")
    assert result.exit_code == 1
    assert "1 in a bad encoding" in result.stderr
    assert result.stderr.rstrip().endswith("answer: nothing to index")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no such file or folder: nowhere"),
        (["nowhere/*.md"], "no file matches nowhere/*.md"),
        ([".", "--rev", "nonsense"], "git"),
        ([".", "--no-git", "--rev", "main"], "leave out --rev, or --no-git"),
        ([".", "--report", "nowhere/report.jsonl"], "nowhere/report.jsonl"),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line(
    indexed: list[Passage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = index(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert indexed == []


@pytest.mark.parametrize("arguments", [["--format", "pdf"], ["--dates", "guess"], ["--max-file-mb", "0"]])
def test_options_that_are_none(arguments: list[str]) -> None:
    assert index(".", *arguments).exit_code == 2


def test_options_come_from_settings_and_the_command_line_wins(chosen: list[Options], tmp_path: Path) -> None:
    config = tmp_path / "x.yaml"
    config.write_text(
        "applications: [{args: {sources: {dates: file, max_file_mb: 2, git: false}, home: "
        + json.dumps(str(tmp_path))
        + "}}]"
    )
    index("x", "--config", config)
    index(
        "x", "--config", config, "--dates", "none", "--max-file-mb", "0.5", "--git", "--rev", "v1", "--format", "jsonl"
    )
    index("x", "--config", config, "--name", "wiki")
    assert chosen == [
        Options(dates=Dates.FILE, max_bytes=2_000_000, git=False),
        Options(dates=Dates.NONE, max_bytes=500_000, git=True, rev="v1", format=Format.JSONL),
        Options(dates=Dates.FILE, max_bytes=2_000_000, git=False, name="wiki"),
    ]


def test_the_defaults_of_settings_and_of_reading_are_one(chosen: list[Options]) -> None:
    index("x")
    assert chosen == [Options()]


@pytest.mark.parametrize("sources", [{"dates": "guess"}, {"max_file_mb": 0}, {"git": "maybe"}, {"gti": True}])
def test_settings_that_are_none(sources: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="sources"):
        parse({"sources": sources})


def test_what_shapes_the_index_is_not_in_the_version_of_answers() -> None:
    assert parse({"sources": {"dates": "file"}}).version == Settings().version


def test_a_pipe_is_read_as_bytes(indexed: list[Passage], monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, "Text of an œuvre.".encode("utf-16"))
    os.close(write_end)
    with io.TextIOWrapper(os.fdopen(read_end, "rb"), encoding="ascii") as piped:
        monkeypatch.setattr("sys.stdin", piped)
        indexing.index_sources(["-"], Options(name="piped.txt"), Settings(), indexing.Steps())
    assert [(passage.title, passage.text) for passage in indexed] == [("piped.txt", "Text of an œuvre.")]
