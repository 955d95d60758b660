"""``answer index``: what it changes, lists, removes and verifies, and what it says."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from serving.cli import indexing
from serving.retrieval.embedding import embed_missing
from serving.retrieval.manifest import Manifest
from serving.settings import Settings
from tests.unit.retrieval.fakes import FakeEmbedder

from .test_cli import answer, reason


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an index of two pages, embedded by a fake."""
    home, docs = tmp_path / "home", tmp_path / "docs"
    monkeypatch.setenv("ANSWER_HOME", str(home))
    monkeypatch.setattr(indexing, "embedder_name", lambda _settings: "fake")
    monkeypatch.setattr(indexing, "embed", lambda settings, _steps: fake_embed(settings.index_path))
    docs.mkdir()
    (docs / "apple.md").write_text("# Apple\n\nApples are picked in September.")
    (docs / "birch.md").write_text("# Birch\n\nBirches are white.")
    assert answer("index", str(docs)).exit_code == 0
    return docs


def fake_embed(root: Path) -> Manifest:
    return embed_missing(root, FakeEmbedder(), embedder_name="fake", progress=lambda *_: None)


def rows(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer("index", "--list", "--json", *arguments).stdout.splitlines()]


def test_index_says_what_it_did(indexed: Path) -> None:
    (indexed / "apple.md").write_text("# Apple\n\nApples are picked in October.")
    (indexed / "birch.md").unlink()
    (indexed / "cedar.md").write_text("Cedars smell.")
    (indexed / "d.png").write_bytes(b"\0")
    said = answer("index", str(indexed)).stderr
    assert "documents: 1 added, 1 updated, 1 removed; generation " in said
    assert "2 documents, 2 passages" in said
    assert "passed over: 1 of another type" in said
    assert "documents: 2 unchanged" in answer("index", str(indexed)).stderr


def test_list_names_each_document(indexed: Path) -> None:
    apple, birch = rows()
    assert apple == {
        "document": str(indexed / "apple.md"),
        "source": str(indexed),
        "title": "Apple",
        "url": None,
        "given": str(indexed),
        "passages": 1,
        "published_at": None,
        "indexed_at": apple["indexed_at"],
        "fingerprint": apple["fingerprint"],
    }
    assert birch["fingerprint"] != apple["fingerprint"]
    assert datetime.fromisoformat(apple["indexed_at"]).tzinfo is not None
    source, *documents = answer("index", "--list").stdout.splitlines()
    assert source == str(indexed)
    assert [line.split()[-1] for line in documents] == [apple["document"], birch["document"]]
    assert all(line.split()[:2] == ["1", "undated"] for line in documents)


def test_remove_by_path(indexed: Path) -> None:
    assert "1 removed" in answer("index", "--remove", str(indexed / "apple.md")).stderr
    assert [row["title"] for row in rows()] == ["Birch"]
    assert "`answer index --list`" in reason(answer("index", "--remove", "nonsense"))


def test_verify_exits_0_when_whole_and_1_with_the_command_when_not(indexed: Path) -> None:
    whole = answer("index", "--verify")
    assert (whole.exit_code, whole.stdout) == (0, "")
    assert "whole: generation " in whole.stderr
    root = indexed.parent / "home" / "index"
    for path in root.glob("generations/*/lexical/*.store"):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[:-1])
    damaged = answer("index", "--verify")
    assert damaged.exit_code == 1
    assert "was changed: run `answer index --installed --replace`" in damaged.stderr


def test_an_index_that_is_damaged_is_replaced_only_when_asked(indexed: Path) -> None:
    for path in (indexed.parent / "home" / "index").glob("generations/*/catalogue.sqlite"):
        path.write_bytes(b"")
    assert "answer index --replace" in reason(answer("index", str(indexed)))
    assert answer("index", str(indexed), "--replace").exit_code == 0
    assert len(rows()) == 2


def test_what_up_needs_to_start(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    assert indexing.mending(settings) is None
    monkeypatch.setattr(indexing, "embedder_name", lambda _settings: "another")
    assert indexing.mending(settings) == ["--embed"]
    for path in settings.index_path.glob("generations/*/manifest.json"):
        path.write_text('{"format": 1}')
    assert indexing.mending(settings) == ["--installed", "--replace"]


@pytest.mark.parametrize("arguments", [("--list", "--verify"), ("README.md", "--remove", "x"), ("--embed", "--list")])
def test_index_does_one_thing_at_a_time(arguments: tuple[str, ...]) -> None:
    assert "one of" in reason(answer("index", *arguments), code=2)
