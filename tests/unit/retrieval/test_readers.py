from pathlib import Path

import pytest

from serving.answer.types import Passage
from serving.retrieval.chunking import passages
from serving.retrieval.documents import Document, Skipped, SkipReason
from serving.retrieval.readers import MAX_FILE_BYTES, read


def test_a_folder_is_read_and_what_is_passed_over_is_counted(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / ".git").mkdir()
    (docs / "a.md").write_bytes(b"\xef\xbb\xbf# Alpha\r\n\r\nThe first page.\r\n")
    (docs / "deep" / "b.rst").write_text("Beta\n====\n\nThe ``second`` page.\n")
    (docs / "c.txt").write_text("No heading here.")
    (docs / ".git" / "d.md").write_text("Hidden.")
    (docs / "e.png").write_bytes(b"\x89PNG\0")
    (docs / "f.txt").write_bytes(b"text\0binary")
    (docs / "g.md").write_bytes("café".encode("latin-1"))
    (docs / "h.markdown").write_text(" \n")
    (docs / "i.txt").write_text("x" * (MAX_FILE_BYTES + 1))
    (docs / "j.md").symlink_to(docs / "missing.md")
    items = list(read(docs))
    found = [passage for item in items if isinstance(item, Document) for passage in passages(item)]
    assert [(passage.title, passage.heading_path, passage.text, passage.source_path) for passage in found] == [
        ("Alpha", ("Alpha",), "The first page.", "a.md"),
        ("c.txt", (), "No heading here.", "c.txt"),
        ("Beta", ("Beta",), "The `second` page.", "deep/b.rst"),
    ]
    assert {passage.source for passage in found} == {docs.as_posix()}
    assert sorted(item.reason for item in items if isinstance(item, Skipped)) == sorted(
        set(SkipReason) - {SkipReason.BAD_ROW}
    )


def read_one(path: Path) -> list[Passage]:
    return [passage for item in read(path) if isinstance(item, Document) for passage in passages(item)]


def test_a_file_given_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.md").write_text("Some notes.")
    [passage] = read_one(tmp_path / "notes.md")
    assert (passage.source, passage.source_path, passage.title) == (tmp_path.as_posix(), "notes.md", "notes.md")
    monkeypatch.chdir(tmp_path)
    [passage] = read_one(Path("notes.md"))
    assert (passage.source, passage.source_path) == (tmp_path.name, "notes.md")


def test_a_missing_path_is_named_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.md"):
        read(tmp_path / "nowhere.md")
