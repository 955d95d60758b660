import fcntl
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving.answer.errors import IndexMissingError
from serving.retrieval import updating
from serving.retrieval.catalogue import Catalogue
from serving.retrieval.changes import Given
from serving.retrieval.documents import Document, Item, Skipped, SkipReason
from serving.retrieval.generations import EMBED_COMMAND, IndexLockedError
from serving.retrieval.index import HybridIndex
from serving.retrieval.lexical import LexicalWriter
from serving.retrieval.updating import remove, update
from serving.retrieval.verifying import verify

from .conftest import LIBRARY, NOW, Build, document, embed_fake, update_fake
from .fakes import FakeEmbedder

PAGES = [document(f"{name}.md", f"# {name}\n\nAll about {name}.") for name in ("apple", "birch", "cedar", "dogwood")]


def found(root: Path, word: str) -> list[str]:
    return [passage.text for passage in HybridIndex.open(root).lexical(word, 9)]


def generations(root: Path) -> set[str]:
    return {folder.name for folder in (root / "generations").iterdir()}


def whole(root: Path) -> bool:
    """Nothing is wrong, but that embeddings may be missing."""
    return not [fault for fault in verify(root, lambda _said: None)[1] if fault.mend != EMBED_COMMAND]


def test_the_manifest_describes_the_generation(build: Build, tmp_path: Path) -> None:
    manifest = build(LIBRARY)
    index = HybridIndex.open(tmp_path, "fake")
    assert index.manifest == manifest
    assert len(index) == manifest.passages == manifest.documents == manifest.embedded == len(LIBRARY)
    assert (manifest.embedder, manifest.dimension, manifest.corpus) == ("fake", 32, "docs")
    assert manifest.built_at.tzinfo is not None
    assert {name.partition("/")[0] for name in manifest.files} == {"lexical", "vectors", "catalogue.sqlite"}
    on_disk = {path.relative_to(index.folder).as_posix() for path in index.folder.rglob("*") if path.is_file()}
    assert on_disk - {"lexical/.tantivy-meta.lock"} == {*manifest.files, "manifest.json"}


def test_the_same_documents_make_the_same_generation(tmp_path: Path) -> None:
    first, _ = update_fake(tmp_path / "a", PAGES)
    second, _ = update_fake(tmp_path / "b", PAGES[::-1])
    other, _ = update_fake(tmp_path / "c", [*PAGES[:-1], replace(PAGES[-1], title="another")])
    embedder, _ = update_fake(tmp_path / "d", PAGES, embedder_name="another")
    assert first.generation == second.generation
    assert len({first.generation, other.generation, embedder.generation}) == 3


def test_only_what_changed_is_analysed_and_embedded(
    tmp_path: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_fake(tmp_path, PAGES)
    embed_fake(tmp_path, embedder)
    analysed: list[str] = []
    add = LexicalWriter.add

    def spy(writer: LexicalWriter, ordinal: int, passage: object, number: int) -> None:
        analysed.append(passage.text)  # type: ignore[attr-defined]
        add(writer, ordinal, passage, number)  # type: ignore[arg-type]

    monkeypatch.setattr(LexicalWriter, "add", spy)
    embedder.calls.clear()
    changed = document("birch.md", "# birch\n\nNow about maple.")
    manifest, changes = update_fake(tmp_path, [PAGES[0], changed, *PAGES[2:], document("elm.md", "All about elm.")])
    assert (changes.added, changes.updated, changes.removed, changes.unchanged) == (1, 1, 0, 3)
    assert analysed == ["Now about maple.", "All about elm."]
    assert manifest.version == f"{manifest.generation}+60%"
    assert embed_fake(tmp_path, embedder).version == manifest.generation
    assert [text for call in embedder.calls for text in call] == [
        "birch.md\nbirch\nNow about maple.",
        "elm.md\nAll about elm.",
    ]
    assert found(tmp_path, "birch") == ["Now about maple."]
    assert found(tmp_path, "maple") == ["Now about maple."]
    assert whole(tmp_path)


def test_nothing_new_is_no_new_generation(tmp_path: Path) -> None:
    first, _ = update_fake(tmp_path, PAGES)
    second, changes = update_fake(tmp_path, PAGES)
    assert second == first
    assert (changes.unchanged, changes.added) == (4, 0)
    assert generations(tmp_path) == {first.folder}


def test_what_vanished_from_a_folder_goes_and_other_folders_stay(tmp_path: Path) -> None:
    notes = [document("oak.md", "All about oak.", "/docs/notes"), document("fir.md", "All about fir.", "/elsewhere")]
    update_fake(tmp_path, PAGES)
    update_fake(tmp_path, [notes[0]], "/docs/notes")
    update_fake(tmp_path, [notes[1]], "/docs-and-more")
    _, changes = update_fake(tmp_path, PAGES[:3])
    # The folder below went too: it is part of the one that was given, and was not found there.
    assert (changes.removed, changes.unchanged) == (2, 3)
    assert found(tmp_path, "dogwood") == found(tmp_path, "oak") == []
    assert found(tmp_path, "apple") != []
    assert found(tmp_path, "fir") != []
    assert whole(tmp_path)


def test_a_file_given_twice_is_one_document(tmp_path: Path) -> None:
    again = replace(PAGES[0], source="/docs/..")
    manifest, changes = update_fake(tmp_path, [*PAGES, again])
    assert (manifest.documents, changes.added) == (4, 4)


def test_documents_of_one_name_are_told_apart_by_their_order(tmp_path: Path) -> None:
    rows = [Document(text=f"Row {number}.", title="rows", source="rows") for number in range(3)]
    update_fake(tmp_path, rows)
    manifest, changes = update_fake(tmp_path, [*rows[:2], replace(rows[2], text="Another row.")])
    assert (manifest.documents, changes.unchanged, changes.updated) == (3, 2, 1)
    assert len(found(tmp_path, "row")) == 3


def test_passages_with_the_same_id_are_indexed_once(tmp_path: Path) -> None:
    twice = Document(text="", title="", source="s", ready=(LIBRARY[0], LIBRARY[1], LIBRARY[0]), place="x")
    assert update_fake(tmp_path, [twice])[0].passages == 2


def test_replacing_forgets_what_was_there(tmp_path: Path) -> None:
    before, _ = update_fake(tmp_path, PAGES)
    after, _ = update_fake(tmp_path, [document("elm.md", "All about elm.", "/other")], "/other", replace=True)
    assert (after.documents, found(tmp_path, "apple")) == (1, [])
    assert after.lineage != before.lineage


def test_nothing_to_read_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    before, _ = update_fake(tmp_path, PAGES)
    for items in ([], [Skipped("x", SkipReason.EMPTY)]):
        with pytest.raises(ValueError, match="nothing to index"):
            update_fake(tmp_path, items)
    assert HybridIndex.open(tmp_path).manifest == before


def test_what_was_passed_over_is_told(tmp_path: Path) -> None:
    skipped = Skipped("/docs/a.png", SkipReason.BINARY)
    assert update_fake(tmp_path, [skipped, *PAGES])[1].skipped == 1


@pytest.mark.parametrize("read", [0, 3])
def test_a_reader_that_breaks_leaves_the_generation_that_answered(tmp_path: Path, read: int) -> None:
    def breaking() -> Iterator[Item]:
        yield from PAGES[:read]
        raise RuntimeError("broken")

    before, _ = update_fake(tmp_path, [PAGES[0]])
    with pytest.raises(RuntimeError, match="broken"):
        update_fake(tmp_path, breaking())
    assert HybridIndex.open(tmp_path).manifest == before
    assert generations(tmp_path) == {before.folder}
    assert not list(tmp_path.glob("building-*"))
    assert whole(tmp_path)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("/docs/apple.md", 1),
        ("/docs", 4),
        ("/docs/", 4),
        ("/doc", None),
        ("apple.md", None),
        ("/rows.jsonl", 2),
        ("/rows.jsonl#1", 1),
        ("numpy", 1),
        ("installed", 1),
    ],
)
def test_removing_by_key_source_or_path(tmp_path: Path, name: str, gone: int | None) -> None:
    rows = [Document(text=f"Row {n}.", title="", source="rows", place=f"/rows.jsonl#{n}") for n in (1, 2)]
    update_fake(tmp_path, PAGES)
    update_fake(tmp_path, rows, "/rows.jsonl")
    update_fake(tmp_path, [Document(text="Arrays.", title="", source="numpy", place="installed:numpy")], "installed")
    if gone is None:
        with pytest.raises(ValueError, match="answer index --list"):
            remove(tmp_path, ["/docs/birch.md", name], now=NOW)
        assert HybridIndex.open(tmp_path).manifest.documents == 7
        return
    manifest, changes = remove(tmp_path, [name], now=NOW)
    assert (changes.removed, manifest.documents) == (gone, 7 - gone)
    assert whole(tmp_path)


def test_removing_everything_leaves_an_index_that_finds_nothing(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    embed_fake(tmp_path, embedder)
    manifest, _ = remove(tmp_path, ["/docs", "/docs/apple.md"], now=NOW)
    index = HybridIndex.open(tmp_path)
    assert (manifest.documents, manifest.passages, manifest.embedded, manifest.segments) == (0, 0, 0, ())
    assert index.lexical("apple", 3) == index.hybrid("apple", embedder(["apple"])[0], 3, 9) == []
    assert whole(tmp_path)


def test_removing_from_no_index(tmp_path: Path) -> None:
    with pytest.raises(IndexMissingError, match="nothing to remove"):
        remove(tmp_path, ["x"], now=NOW)


def test_the_generation_before_is_kept_for_open_readers(tmp_path: Path, embedder: FakeEmbedder) -> None:
    built = [update_fake(tmp_path, PAGES[:1])[0].folder]
    reader = HybridIndex.open(tmp_path)
    for count in (2, 3, 4):
        built.append(update_fake(tmp_path, PAGES[:count])[0].folder)
        assert HybridIndex.open(tmp_path).folder.name == built[-1]
    assert generations(tmp_path) == set(built[-2:])
    assert reader.lexical("apple", 1)[0].title == "apple.md"


def test_files_that_did_not_change_are_the_same_on_disk(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    embed_fake(tmp_path, embedder)
    before = HybridIndex.open(tmp_path)
    manifest, _ = update_fake(tmp_path, [document("elm.md", "All about elm.", "/other")], "/other")
    after = tmp_path / "generations" / manifest.folder
    shared = {name for name in manifest.files if (before.folder / name).exists()}
    linked = {name for name in shared if (before.folder / name).samefile(after / name)}
    assert linked >= {name for name in shared if name.endswith((".store", ".term", ".faiss", ".ordinals"))} != set()
    assert shared - linked == {"lexical/meta.json", "lexical/.managed.json", "catalogue.sqlite"}
    assert all(manifest.files[name] == before.manifest.files[name] for name in linked)


def test_where_files_cannot_be_linked_they_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    update_fake(tmp_path, PAGES[:2])
    update_fake(tmp_path, PAGES)
    assert found(tmp_path, "apple") != []
    assert HybridIndex.open(tmp_path).manifest.documents == 4


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with (tmp_path / "build.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(IndexLockedError, match="another process is building"):
            update(
                tmp_path,
                [Given("/docs", PAGES)],
                embedder_name="fake",
                now=NOW,
                progress=lambda *_: None,
                lock_timeout_s=0.1,
            )
    assert update_fake(tmp_path, PAGES)[0].documents == 4


def test_an_index_that_cannot_be_read_is_not_written_over_unasked(tmp_path: Path) -> None:
    manifest, _ = update_fake(tmp_path, PAGES)
    (tmp_path / "generations" / manifest.folder / "catalogue.sqlite").unlink()
    with pytest.raises(IndexMissingError, match="--replace"):
        update_fake(tmp_path, PAGES[:1])
    assert update_fake(tmp_path, PAGES[:1], replace=True)[0].documents == 1


def test_names_that_are_no_text_are_stored(tmp_path: Path) -> None:
    odd = Document(
        text="All about elm.", title="\udcff", source="\udcfe", source_path="\udcff.md", place="/docs/\udcff"
    )
    update_fake(tmp_path, [odd])
    assert update_fake(tmp_path, [odd])[1].unchanged == 1
    [record] = Catalogue(HybridIndex.open(tmp_path).folder / "catalogue.sqlite")
    assert record.location == "/docs/\\udcff"
    assert remove(tmp_path, ["/docs/\udcff"], now=datetime.now(UTC))[1].removed == 1


WORDS = ["apple", "birch", "cedar", "elm"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(WORDS), st.sampled_from(WORDS), min_size=1), min_size=1, max_size=5))
def test_an_updated_index_finds_what_a_fresh_one_does(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[str, str]]
) -> None:
    root, fresh, embedder = tmp_path_factory.mktemp("index"), tmp_path_factory.mktemp("fresh"), FakeEmbedder()
    for state in states:
        pages = [
            document(f"{name}.md", f"# {name}\n\nAll about {text}.\n\n# More\n\n{text}") for name, text in state.items()
        ]
        update_fake(root, pages)
        embed_fake(root, embedder, rows=2)
    update_fake(fresh, pages)
    embed_fake(fresh, embedder)
    ours, theirs = HybridIndex.open(root), HybridIndex.open(fresh)
    assert (ours.generation, len(ours)) == (theirs.generation, len(theirs))
    assert whole(root)
    for word in WORDS:
        assert {p.id for p in ours.lexical(word, 99)} == {p.id for p in theirs.lexical(word, 99)}
        vector = embedder([word])[0]
        assert {p.id for p in ours.hybrid("", vector, 99, 99)} == {p.id for p in theirs.hybrid("", vector, 99, 99)}
        assert ours.frequencies([word]) == theirs.frequencies([word])


def test_a_pointer_that_names_nothing_is_no_fresh_start(tmp_path: Path) -> None:
    update_fake(tmp_path, PAGES)
    (tmp_path / "CURRENT").write_text("garbage")
    with pytest.raises(IndexMissingError):
        update_fake(tmp_path, PAGES)
    assert updating.current_base(tmp_path / "nowhere") is None
