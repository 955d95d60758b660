"""Real repositories, made by git in a folder of the test's own."""

import gzip
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from serving.retrieval.chunking import passages
from serving.retrieval.documents import SkipReason
from serving.retrieval.sources.git import remote_name
from serving.retrieval.sources.options import Dates, Format, Options, SourceError
from serving.retrieval.sources.reading import read, sources

from .reading import commit, git, items, reasons, texts

FIRST, SECOND, THIRD = (f"2024-0{month}-01T00:00:00+02:00" for month in (1, 2, 3))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    git(folder, "init", "--quiet")
    files = {
        "README.md": "# Library\n\nOld text.",
        "docs/a.md": "A page.",
        "docs/ü ñ.txt": "Names.",
        ".gitignore": "*.log\n",
    }
    commit(folder, files, at=FIRST)
    commit(folder, {"README.md": "# Library\n\nNew text.", "src/x.py": "print()"}, at=SECOND)
    return folder


def test_every_passage_has_repository_path_and_the_commit_of_its_text(repository: Path) -> None:
    first, second = git(repository, "rev-list", "--reverse", "HEAD").split()
    documents, skipped = items(repository)
    found = [passage for document in documents for passage in passages(document)]
    assert [(passage.repo_path, passage.source, passage.source_path, passage.commit_sha) for passage in found] == [
        ("library", "library", "README.md", second),
        ("library", "library", "docs/a.md", first),
        ("library", "library", "docs/ü ñ.txt", first),
    ]
    assert [(skip.path, skip.reason) for skip in skipped] == [("library/src/x.py", SkipReason.OTHER_TYPE)]
    for passage in found:
        cited = git(repository, "show", f"{passage.commit_sha}:{passage.source_path}")
        assert passage.text in cited


def test_only_what_is_committed_is_read(repository: Path) -> None:
    (repository / "untracked.md").write_text("Not added.")
    (repository / "ignored.log").write_text("Ignored.")
    (repository / "docs" / "a.md").write_text("Changed, not committed.")
    (repository / "README.md").unlink()
    assert texts(repository) == {
        "README.md": "# Library\n\nNew text.",
        "docs/a.md": "A page.",
        "docs/ü ñ.txt": "Names.",
    }
    assert texts(repository, git=False)["untracked.md"] == "Not added."


def test_a_commit_changes_the_fingerprints_of_its_files_alone(repository: Path) -> None:
    before = {document.source_path: document for document in items(repository)[0]}
    commit(repository, {"docs/a.md": "A page, changed."}, at=THIRD)
    after = {document.source_path: document for document in items(repository)[0]}
    assert [document.key for document in before.values()] == [document.key for document in after.values()]
    assert [path for path in before if before[path].fingerprint != after[path].fingerprint] == ["docs/a.md"]


def test_another_revision(repository: Path) -> None:
    first, _ = git(repository, "rev-list", "--reverse", "HEAD").split()
    git(repository, "tag", "v1", first)
    for rev in ("v1", first, first[:10], "HEAD~1"):
        assert texts(repository, rev=rev)["README.md"].endswith("Old text.")
    assert texts(repository, rev="main")["README.md"].endswith("New text.")


def test_part_of_a_repository(repository: Path) -> None:
    assert list(texts(repository / "docs", git=True)) == ["docs/a.md", "docs/ü ñ.txt"]
    assert list(texts(repository / "docs")) == ["a.md", "ü ñ.txt"]
    [document], _ = items(repository / "docs" / "a.md", git=True)
    assert (document.source_path, document.repo_path) == ("docs/a.md", "library")
    whole = {document.source_path: document for document in items(repository)[0]}
    assert whole["docs/a.md"] == document
    assert texts(repository / "src" / "x.py", rev="HEAD", format=Format.TEXT) == {"src/x.py": "print()"}


def test_a_bare_repository_is_read_like_its_work_tree(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "library.git")
    bare, _ = items(tmp_path / "library.git")
    work, _ = items(repository)
    assert [(item.source, item.source_path, item.commit_sha, item.text) for item in bare] == [
        (item.source, item.source_path, item.commit_sha, item.text) for item in work
    ]


def test_a_merge_counts_as_what_it_brought(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "side")
    commit(repository, {"docs/a.md": "Changed aside."}, at=SECOND)
    git(repository, "checkout", "--quiet", "main")
    commit(repository, {"README.md": "# Library\n\nNewer text."}, at=THIRD)
    git(repository, "merge", "--quiet", "--no-ff", "--message", "Merge", "side", at=THIRD)
    documents = {document.source_path: document for document in items(repository)[0]}
    merge = git(repository, "rev-parse", "HEAD")
    assert (documents["docs/a.md"].text, documents["docs/a.md"].commit_sha) == ("Changed aside.", merge)
    assert documents["README.md"].commit_sha == git(repository, "rev-parse", "HEAD^1")


def test_a_change_that_a_merge_threw_away_is_not_cited(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "side")
    thrown_away = commit(repository, {"docs/a.md": "Thrown away."}, at=THIRD)
    git(repository, "checkout", "--quiet", "main")
    commit(repository, {"README.md": "Other."}, at=SECOND)
    git(repository, "merge", "--quiet", "--no-ff", "--strategy", "ours", "--message", "Merge", "side", at=THIRD)
    documents = {document.source_path: document for document in items(repository)[0]}
    assert documents["docs/a.md"].text == "A page."
    assert documents["docs/a.md"].commit_sha != thrown_away


def test_a_shallow_clone_cites_the_commit_that_it_has(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", "shallow")
    head = git(repository, "rev-parse", "HEAD")
    assert {document.commit_sha for document in items(tmp_path / "shallow")[0]} == {head}


def test_dates_are_those_of_commits(repository: Path) -> None:
    commit(repository, {"own.md": "---\ndate: 2020-01-01\n---\nText."}, at=THIRD)
    found = {document.source_path: document.published_at for document in items(repository, dates=Dates.FILE)[0]}
    assert found["README.md"] == datetime.fromisoformat(SECOND).astimezone(UTC)
    assert found["docs/a.md"] == datetime.fromisoformat(FIRST).astimezone(UTC)
    assert found["own.md"] == datetime(2020, 1, 1, tzinfo=UTC)
    assert {document.published_at for document in items(repository / "docs", git=True)[0]} == {None}


def test_rows_are_read_from_git_too(repository: Path) -> None:
    rows = b'{"text": "One.", "id": "1"}\noops\n{"text": "Two.", "id": "2"}\n'
    sha = commit(repository, {"a.jsonl": rows, "b.jsonl.gz": gzip.compress(rows)}, at=THIRD)
    documents, skipped = items(repository, max_bytes=40)
    ready = [passage for document in documents for passage in document.ready or ()]
    assert [(passage.text, passage.source_path, passage.commit_sha, passage.repo_path) for passage in ready] == [
        (text, path, sha, "library") for path in ("a.jsonl", "b.jsonl.gz") for text in ("One.", "Two.")
    ]
    assert [skip.path for skip in skipped if skip.reason is SkipReason.BAD_ROW] == [
        "library/a.jsonl:2",
        "library/b.jsonl.gz:2",
    ]


def test_odd_things_that_git_tracks(repository: Path) -> None:
    (repository / "link.md").symlink_to("README.md")
    git(repository, "add", "link.md")
    commit(repository, {
        ".github/notes.md": "Hidden.", "large.txt": "x" * 600, "binary.md": b"a\0b", "empty.md": "",
        "\x01" + "0" * 40 + " 1.md": "Odd.", "new\nline.md": "Odd.", os.fsdecode(b"caf\xe9.md"): "Odd.",
        "after.md": "Comes after what was not read to its end.",
    }, at=THIRD)  # fmt: skip
    head = git(repository, "rev-parse", "HEAD")
    documents, _ = items(repository, max_bytes=500)
    odd = {document.source_path: document.commit_sha for document in documents if "Odd" in document.text}
    assert odd == dict.fromkeys(["\x01" + "0" * 40 + " 1.md", "new\nline.md", "caf\\xe9.md"], head)
    assert reasons(repository, max_bytes=500) == {
        "x.py": SkipReason.OTHER_TYPE, "large.txt": SkipReason.TOO_LARGE, "binary.md": SkipReason.BINARY,
        "empty.md": SkipReason.EMPTY,
    }  # fmt: skip
    assert "link.md" not in texts(repository)
    assert texts(repository)["after.md"].startswith("Comes after")


def test_an_object_that_is_missing_is_passed_over(repository: Path) -> None:
    oid = git(repository, "rev-parse", "HEAD:docs/a.md")
    path = repository / ".git" / "objects" / oid[:2] / oid[2:]
    path.chmod(stat.S_IWUSR)
    size = path.stat().st_size
    path.unlink()
    assert size > 0
    documents, skipped = items(repository)
    assert [document.source_path for document in documents] == ["README.md", "docs/ü ñ.txt"]
    assert ("library/docs/a.md", SkipReason.UNREADABLE) in [(skip.path, skip.reason) for skip in skipped]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/owner/name.git", "github.com/owner/name"),
        ("https://user:secret@github.com/owner/name", "github.com/owner/name"),
        ("https://user:s@cr@t@github.com:8443/owner/name", "github.com/owner/name"),
        ("https://github.com/owner/name.git?token=secret", "github.com/owner/name"),
        ("https://user:sec/ret@github.com/owner/name", None),
        ("git@github.com:owner/name.git", "github.com/owner/name"),
        ("ssh://git@git.example:2222/deep/owner/name.git/", "git.example/deep/owner/name"),
        ("/srv/name.git", None),
        ("file:///srv/name.git", None),
        ("", None),
    ],
)
def test_the_name_of_a_remote_holds_no_credentials(url: str, name: str | None) -> None:
    assert remote_name(url) == name


def test_clones_of_one_remote_are_one_repository(repository: Path, tmp_path: Path) -> None:
    alone = sources([str(repository)], Options())[0].scope
    assert alone == f"git:{repository.resolve()}"
    git(tmp_path, "clone", "--quiet", str(repository), "elsewhere")
    for folder in (repository, tmp_path / "elsewhere"):
        git(folder, "config", "remote.origin.url", "https://me:secret@git.example/owner/library.git")
    keys = [[document.key for document in items(folder)[0]] for folder in (repository, tmp_path / "elsewhere")]
    assert keys[0] == keys[1]
    [source] = sources([str(repository / "docs")], Options(git=True))
    assert (source.scope, source.is_folder) == ("git:git.example/owner/library/docs", True)
    assert all(document.key.startswith(f"{source.scope}/") for document in source.items if hasattr(document, "key"))


def test_what_cannot_be_read_from_git_names_the_fix(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "--quiet")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", "")
    cases = [
        (tmp_path / "plain", Options(git=True), "--no-git"),
        (tmp_path / "new", Options(), "no commit yet.*--no-git"),
        (repository, Options(rev="nonsense"), "no commit, branch or tag nonsense.*git -C"),
        (repository, Options(rev="--output=/tmp/x"), "names no commit"),
        (repository, Options(rev="HEAD", git=False), "leave out --rev, or --no-git"),
        (repository / "*.md", Options(git=True), "--no-git"),
    ]
    for path, options, said in cases:
        with pytest.raises(SourceError, match=said):
            sources([str(path)], options)


def test_without_git_the_error_says_what_to_install(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match=r"git is not installed.*apt-get install git.*--no-git"):
        sources([str(repository)], Options())
    assert "README.md" in texts(repository, git=False)


def test_what_a_hook_is_told_of_its_repository_is_not_believed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    commit(other, {"other.md": "Other."})
    expected = texts(repository)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert texts(repository) == expected


def test_a_reading_that_is_left_stops_git(repository: Path) -> None:
    reading = read([str(repository)], Options())
    next(reading)
    reading.close()
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    assert not children.exists() or children.read_text().split() == []
