from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from serving.answer.types import Passage
from serving.retrieval.chunking import passages
from serving.retrieval.documents import Document

DOCUMENT = Document(
    text="# A\n\nSome text.",
    title="A",
    source="docs",
    source_path="a.md",
    url="https://x.y/a",
    repo_path="github.com/o/n",
    commit_sha="c" * 40,
    published_at=datetime(2024, 1, 2, tzinfo=UTC),
    place="/home/docs/a.md",
)
OTHER = {
    "text": "# A\n\nOther text.",
    "title": "B",
    "source": "pages",
    "source_path": "b.md",
    "url": None,
    "repo_path": None,
    "commit_sha": "d" * 40,
    "published_at": None,
    "ready": (Passage("1", "Ready."),),
}


def test_what_all_passages_share() -> None:
    [passage] = passages(DOCUMENT)
    assert (passage.text, passage.heading_path) == ("Some text.", ("A",))
    shared = ["title", "source", "source_path", "url", "repo_path", "commit_sha", "published_at"]
    assert [getattr(passage, name) for name in shared] == [getattr(DOCUMENT, name) for name in shared]


def test_ready_passages_are_not_cut() -> None:
    ready = (Passage("1", "# Not a heading"), Passage("2", "word " * 2000))
    assert tuple(passages(replace(DOCUMENT, ready=ready))) == ready


@pytest.mark.parametrize("name", OTHER)
def test_the_fingerprint_changes_with_whatever_shapes_a_passage(name: str) -> None:
    assert replace(DOCUMENT, **{name: OTHER[name]}).fingerprint != DOCUMENT.fingerprint


def test_the_fingerprint_does_not_change_with_the_place() -> None:
    assert {field.name for field in fields(Document)} == {*OTHER, "place"}
    assert replace(DOCUMENT, place="/elsewhere/a.md").fingerprint == DOCUMENT.fingerprint


def test_the_fingerprint_of_ready_passages_is_theirs() -> None:
    one, other = (replace(DOCUMENT, ready=(Passage("1", text),)) for text in ("One.", "Other."))
    assert one.fingerprint != other.fingerprint
    assert replace(one, ready=(replace(Passage("1", "One."), score=0.5),)).fingerprint == one.fingerprint


def test_the_key_is_where_it_was_read_whatever_it_says() -> None:
    assert replace(DOCUMENT, text="x", title="y", commit_sha=None).key == DOCUMENT.key
    assert replace(DOCUMENT, place="/home/other/docs/a.md").key != DOCUMENT.key


def test_without_a_place_the_key_is_source_and_path() -> None:
    documents = [
        Document("", "t", "a", "b"),
        Document("", "t", "a", "c"),
        Document("", "t", "ab"),
        Document("", "u", "a"),
    ]
    assert len({document.key for document in documents}) == len(documents)
