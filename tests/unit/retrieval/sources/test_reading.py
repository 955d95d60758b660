"""Files, folders, patterns and standard input, odd ones too."""

import os
import socket
import subprocess
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from serving.retrieval.chunking import passages
from serving.retrieval.documents import SkipReason
from serving.retrieval.sources import parsing
from serving.retrieval.sources.found import found_file
from serving.retrieval.sources.options import Dates, Format, Options, SourceError, format_of
from serving.retrieval.sources.reading import read, sources

from .reading import items, reasons, texts

KIB = 1024


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for name, content in {
        "a.md": "# Alpha\n\nThe first page.\n",
        "deep/b.rst": "Beta\n====\n\nThe ``second`` page.\n",
        "deep/er/c.txt": "No heading here.",
        "page.html": "<title>Page</title><main><h1>Page</h1><p>The third page.</p></main>",
        "rows.jsonl": '{"text": "A row."}\n',
        ".hidden/d.md": "Hidden.",
        ".hidden.md": "Hidden.",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_a_folder_is_read_in_a_fixed_order_without_what_is_hidden(docs: Path) -> None:
    documents, skipped = items(docs)
    found = [(document.source_path or "").partition("#")[0] for document in documents]
    assert found == ["a.md", "page.html", "rows.jsonl", "deep/b.rst", "deep/er/c.txt"]
    assert [document.title for document in documents] == ["Alpha", "Page", "", "Beta", "c.txt"]
    assert {document.source for document in documents} == {docs.as_posix()}
    assert skipped == []
    beta = documents[3]
    assert [(passage.heading_path, passage.text) for passage in passages(beta)] == [(("Beta",), "The `second` page.")]


ODD: dict[str, tuple[bytes, SkipReason]] = {
    "picture.png": (b"\x89PNG\0", SkipReason.OTHER_TYPE),
    "no_suffix": (b"Some text.", SkipReason.OTHER_TYPE),
    "binary.txt": (b"text\0binary", SkipReason.BINARY),
    "binary.jsonl": (b"\0\0\0\0", SkipReason.BINARY),
    "binary16.md": (b"\xff\xfea\0\0\0", SkipReason.BINARY),
    "latin.md": ("café".encode("latin-1"), SkipReason.BAD_ENCODING),
    "half16.txt": (b"\xff\xfea", SkipReason.BAD_ENCODING),
    "latin.html": ("<p>café</p>".encode("latin-1"), SkipReason.BAD_ENCODING),
    "other.html": (b"<meta charset=klingon><p>x</p>", SkipReason.BAD_ENCODING),
    "blank.markdown": (b" \n\t\r\n", SkipReason.EMPTY),
    "nothing.rst": (b"", SkipReason.EMPTY),
    "matter.md": (b"---\ntitle: Only\n---\n", SkipReason.EMPTY),
    "headings.md": (b"# Only\n\n## Headings\n", SkipReason.EMPTY),
    "script.html": (b"<script>1</script>", SkipReason.EMPTY),
    "large.txt": (b"x" * (2 * KIB + 1), SkipReason.TOO_LARGE),
    "row.jsonl": (b'{"test": "x"}', SkipReason.BAD_ROW),
    "broken.jsonl.gz": (b"\x1f\x8b\x08", SkipReason.UNREADABLE),
}


def test_odd_files_are_passed_over_each_for_its_reason(tmp_path: Path) -> None:
    for name, (content, _) in ODD.items():
        (tmp_path / name).write_bytes(content)
    documents, skipped = items(tmp_path, max_bytes=2 * KIB)
    assert documents == []
    found = {skip.path.rpartition("/")[2].removesuffix(":1"): skip.reason for skip in skipped}
    assert found == {name: reason for name, (_, reason) in ODD.items()}


def test_what_is_no_file_is_passed_over_and_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere.md")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "device.md").symlink_to("/dev/zero")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "good.md").write_text("Good.")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.md"))
        assert texts(tmp_path) == {"good.md": "Good."}
        found = reasons(tmp_path)
    assert found == dict.fromkeys(["pipe.md", "gone.md", "self.md", "device.md", "socket.md"], SkipReason.UNREADABLE)


def test_what_is_no_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    assert reasons(tmp_path / "pipe.md") == {"pipe.md": SkipReason.UNREADABLE}


def test_what_becomes_a_pipe_after_it_was_looked_at_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.md").write_text("Text.")
    os.mkfifo(tmp_path / "pipe.md")
    before = os.stat(tmp_path / "file.md")
    found = found_file(tmp_path, tmp_path / "pipe.md")
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda *_, **__: before)
        [item] = parsing.documents(found, Options())
    assert getattr(item, "reason", None) is SkipReason.UNREADABLE


def test_what_may_not_be_read_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.md").write_text("Secret.")
    (tmp_path / "locked").mkdir()
    # Asked of the system: root may read whatever the mode says.
    real_open, real_scandir = os.open, os.scandir

    def fake_open(path: Path, flags: int) -> int:
        if Path(path).name == "secret.md":
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, flags)

    def fake_scandir(path: Path) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return real_scandir(path)

    monkeypatch.setattr(os, "open", fake_open)
    monkeypatch.setattr(os, "scandir", fake_scandir)
    _, skipped = items(tmp_path)
    assert {(skip.path.rpartition("/")[2], skip.reason, skip.detail) for skip in skipped} == {
        ("secret.md", SkipReason.UNREADABLE, "Permission denied"),
        ("locked", SkipReason.UNREADABLE, "Permission denied"),
    }


def test_files_that_vanish_while_reading(docs: Path) -> None:
    reading = read([str(docs)], Options())
    next(reading)
    for path in sorted(docs.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert {getattr(item, "reason", None) for item in reading} == {SkipReason.UNREADABLE}


def test_a_file_that_grows_past_the_limit_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 100)
    assert reasons(tmp_path, max_bytes=99) == {"a.txt": SkipReason.TOO_LARGE}
    assert reasons(tmp_path, max_bytes=100) == {}
    # Says that it has no size, and has: it must be measured by reading.
    assert reasons("-", stdin=b"x" * 100, max_bytes=99) == {"stdin": SkipReason.TOO_LARGE}
    assert "100 bytes" in items(tmp_path, max_bytes=99)[1][0].detail


def test_json_lines_have_no_limit(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "A row."}\n' * 100)
    documents, skipped = items(tmp_path, max_bytes=50)
    assert (len(documents), skipped) == (100, [])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_the_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.md").write_bytes("# Café\r\n\r\nŒuvre.\r".encode(encoding))
    documents, _ = items(tmp_path)
    assert [(document.title, document.text) for document in documents] == [("Café", "# Café\n\nŒuvre.\n")]


def test_names_that_are_no_text_can_be_stored(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.md"
    Path(os.fsdecode(name)).write_text("Text.")
    (tmp_path / "new\nline.md").write_text("Text.")
    documents, _ = items(tmp_path)
    assert [document.source_path for document in documents] == ["caf\\xe9.md", "new\nline.md"]
    for document in documents:
        assert (document.key + document.title).encode()


def test_a_title_is_one_short_line_that_can_be_stored(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text('---\ntitle: "A\\ud800 \\n long ' + "x" * 5000 + '"\n---\n\nText.')
    [document], _ = items(tmp_path)
    assert document.title.startswith("A\ufffd long xxx")
    assert len(document.title) == 300


def test_a_folder_deeper_than_python_recurses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.chdir(tmp_path)
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
        Path("deep.md").write_text("Deep.")
        assert list(texts(tmp_path).values()) == ["Deep."]
    finally:
        # Python's own way of removing a folder would recurse.
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], cwd="/", check=True)


# What is given


def test_a_file_given_by_itself(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [document], _ = items(docs / "a.md")
    assert (document.source, document.source_path, document.title) == (docs.as_posix(), "a.md", "Alpha")
    monkeypatch.chdir(docs)
    [document], _ = items("a.md")
    assert (document.source, document.source_path) == ("docs", "a.md")


def test_a_file_has_one_key_however_it_is_named(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs)
    given = [".", docs, "deep", docs / "deep" / "b.rst", "../docs/deep/b.rst", "**/*.rst", f"{docs}/*/b.rst"]
    keys = [[document.key for document in items(one)[0] if document.title == "Beta"] for one in given]
    assert keys == [[f"{docs.resolve()}/deep/b.rst"]] * len(given)


def test_two_folders_of_one_name_keep_their_keys_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for project in ("one", "two"):
        (tmp_path / project / "docs").mkdir(parents=True)
        (tmp_path / project / "docs" / "a.md").write_text("Text.")
        monkeypatch.chdir(tmp_path / project)
        keys |= {document.key for document in items("docs")[0]}
    assert len(keys) == 2


def test_a_file_that_is_named_twice_is_read_once(docs: Path) -> None:
    assert len(items(docs, docs / "a.md", f"{docs}/**/*.rst", docs)[0]) == 5


def test_scopes_name_the_inputs_and_begin_the_places(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs)
    found = sources(["deep", "a.md", "**/*.md", "-"], Options(name="note"), stdin=BytesIO())
    top = docs.resolve().as_posix()
    assert [source.scope for source in found] == [f"{top}/deep", f"{top}/a.md", f"{top}/**/*.md", "stdin:note"]
    assert [source.is_folder for source in found] == [True, False, False, False]
    assert all(document.key.startswith(f"{top}/deep/") for document in items("deep")[0])


def test_patterns(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(texts(f"{docs}/**/*.[rt]*t")) == ["deep/b.rst", "deep/er/c.txt"]
    assert list(texts(f"{docs}/*")) == ["a.md", "page.html", next(path for path in texts(docs) if "#" in path)]
    assert list(texts(f"{docs}/.hidden/*.md")) == ["d.md"]
    monkeypatch.chdir(docs)
    [document], _ = items("d*/*.rst")
    assert (document.source, document.source_path) == ("docs", "deep/b.rst")


def test_a_name_that_looks_like_a_pattern_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "[draft].md").write_text("A draft.")
    assert texts(tmp_path / "[draft].md") == {"[draft].md": "A draft."}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere.md", "no such file or folder: nowhere.md"),
        ("*.nope", "no file matches"),
        ("a***/*", "is no pattern"),
        ("-", "no standard input"),
    ],
)
def test_an_input_that_is_none_is_named_before_anything_is_read(
    docs: Path, monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    monkeypatch.chdir(docs)
    with pytest.raises(SourceError, match=said):
        sources([".", given], Options())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.md", Format.MARKDOWN), ("A.HTM", Format.HTML), ("x.jsonl.gz", Format.JSONL), ("v1.2.txt", Format.TEXT),
     ("x.gz", None), ("x.txt.gz", None), ("md", None), (".md", None)],
)  # fmt: skip
def test_formats_by_name(name: str, expected: Format | None) -> None:
    assert format_of(name) is expected


def test_a_file_named_by_itself_is_read_as_told(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("<p>Do as you please.</p>")
    assert reasons(tmp_path / "LICENSE") == {"LICENSE": SkipReason.OTHER_TYPE}
    assert texts(tmp_path / "LICENSE", format=Format.HTML) == {"LICENSE": "Do as you please."}
    assert reasons(tmp_path, format=Format.HTML) == {"LICENSE": SkipReason.OTHER_TYPE}


def test_standard_input() -> None:
    [document], _ = items("-", stdin=b"# Head\n\nText.")
    assert (document.title, document.source, document.source_path, document.key) == (
        "Head",
        "stdin",
        None,
        "stdin:stdin",
    )
    [document], _ = items("-", stdin=b"Text.", name="notes.txt")
    assert (document.title, document.source, document.key) == ("notes.txt", "notes.txt", "stdin:notes.txt")
    [document], _ = items("-", stdin=b"<h1>Head</h1><p>Text of a page.</p>", format=Format.HTML)
    assert document.text.endswith("Text of a page.")
    [document], [skip] = items("-", stdin=b'{"text": "a", "id": "1"}\noops', format=Format.JSONL, name="rows")
    assert (document.key, skip.path) == ("stdin:rows#1", "rows:2")


def test_the_report_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "report.jsonl").write_text("oops\n")
    assert items(tmp_path, left_out=tmp_path / "report.jsonl") == ([], [])


# Dates


def dated(path: Path, content: str, dates: Dates) -> datetime | None:
    path.write_text(content)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    [document], _ = items(path, dates=dates)
    [passage] = passages(document)
    return passage.published_at


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.md", "---\ndate: 2024-01-02\n---\nText."), ("a.html", "<meta name=date content=2024-01-02><p>Text.</p>"),
     ("a.jsonl", '{"text": "Text.", "published_at": "2024-01-02T00:00"}')],
)  # fmt: skip
def test_what_a_document_says_of_itself_is_its_date(tmp_path: Path, name: str, content: str) -> None:
    own = datetime(2024, 1, 2, tzinfo=UTC)
    assert dated(tmp_path / name, content, Dates.FRONT_MATTER) == own
    assert dated(tmp_path / name, content, Dates.FILE) == own
    assert dated(tmp_path / name, content, Dates.NONE) is None


@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", "Text."), ("a.md", "---\ndate: soon\n---\nText."), ("a.jsonl", '{"text": "Text."}')]
)
def test_the_file_has_a_date_where_the_document_says_none(tmp_path: Path, name: str, content: str) -> None:
    assert dated(tmp_path / name, content, Dates.FRONT_MATTER) is None
    assert dated(tmp_path / name, content, Dates.FILE) == datetime.fromtimestamp(1_600_000_000, UTC)
