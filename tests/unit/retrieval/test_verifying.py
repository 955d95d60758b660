"""Damage: every file of an index, cut and changed in every region, is noticed when it is opened or checked."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving.answer.errors import IndexMissingError
from serving.retrieval import index as index_module
from serving.retrieval.generations import REPLACE_COMMAND
from serving.retrieval.index import DamagedIndexError, HybridIndex
from serving.retrieval.manifest import ENDS_BYTES, FileSum, ends_of
from serving.retrieval.updating import remove
from serving.retrieval.verifying import verify

from .conftest import LIBRARY, NOW, Build, build_fake, document, update_fake
from .fakes import FakeEmbedder

PAGES = [document("a.md", "All about apples.")]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound")
    build_fake(LIBRARY, root, FakeEmbedder())
    # With a file of every kind: documents and rows that are gone, too.
    remove(root, [f"/docs/{LIBRARY[0].id}"], now=NOW)
    return root


def files(root: Path) -> list[str]:
    manifest = HybridIndex.open(root).manifest
    names = [f"generations/{manifest.folder}/{name}" for name in [*manifest.files, "manifest.json"]]
    assert {Path(name).suffix for name in names} >= {".faiss", ".ordinals", ".tombs", ".sqlite", ".store", ".del"}
    return ["CURRENT", *names]


def faults(root: Path) -> list[str]:
    return [str(fault) for fault in verify(root, lambda _said: None)[1]]


def copy(sound: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(sound, folder))


def test_a_sound_index_has_no_faults(sound: Path) -> None:
    assert faults(sound) == []


def test_every_file_is_missed_and_every_cut_and_change_is_noticed(sound: Path, tmp_path: Path) -> None:
    for name in files(sound):
        content = (sound / name).read_bytes()
        middle = len(content) // 2
        flipped = [
            content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]
            for at in {0, middle, len(content) - 1}
            if content
        ]
        for damaged in [None, b"", content[:middle], content + b"\0", b"\xff\xfe" * 200, *flipped]:
            if damaged == content or (name == "CURRENT" and damaged and damaged.strip() == content.strip()):
                continue
            root = copy(sound, tmp_path / "index")
            # A new file, not the old one overwritten: tantivy maps its files into memory.
            (root / name).unlink()
            if damaged is not None:
                (root / name).write_bytes(damaged)
            with pytest.raises(IndexMissingError, match="answer index") as raised:
                HybridIndex.open(root)
            assert str(root) not in raised.value.message
            if name != "CURRENT" and "manifest" not in name:
                assert Path(name).name in faults(root)[0]
                assert REPLACE_COMMAND in faults(root)[0]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_changed_byte_goes_unnoticed(sound: Path, tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(files(sound)[1:]))
    content = bytearray((sound / name).read_bytes())
    if not content:
        return
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    root = copy(sound, tmp_path / "index")
    (root / name).unlink()
    (root / name).write_bytes(bytes(content))
    with pytest.raises(IndexMissingError, match="answer index"):
        HybridIndex.open(root)


def test_of_a_large_index_sizes_and_ends_are_checked_and_verify_reads_all(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "CHECKED_BYTES", 0)
    name = next(name for name in files(sound) if name.endswith(".store"))
    root = copy(sound, tmp_path / "index")
    whole = HybridIndex.open(root)
    path = root / name
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + b"x")
    with pytest.raises(DamagedIndexError, match="--replace"):
        HybridIndex.open(root)
    assert "was changed" in faults(root)[0]
    assert whole.lexical("path", 3) != []


def test_the_ends_are_the_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytearray(3 * ENDS_BYTES)
    path.write_bytes(content)
    before, known = ends_of(path), FileSum.of(path)
    content[len(content) // 2] = 1
    path.write_bytes(content)
    assert ends_of(path) == before
    assert FileSum.of(path) != known
    content[-1] = 1
    path.write_bytes(content)
    assert ends_of(path) != before


@pytest.mark.parametrize(
    ("change", "message"),
    [({"format": 1}, "format is 1"), ({"passages": 3}, "cannot be read"), ({"surprise": 1}, "cannot be read")],
)
def test_an_incompatible_manifest_is_refused(
    build: Build, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "generations" / build(LIBRARY).folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(IndexMissingError, match=message) as raised:
        HybridIndex.open(tmp_path)
    assert REPLACE_COMMAND in raised.value.message


def test_a_damaged_index_can_be_built_again(build: Build, tmp_path: Path) -> None:
    manifest = build(LIBRARY)
    shutil.rmtree(tmp_path / "generations" / manifest.folder / "lexical")
    with pytest.raises(DamagedIndexError):
        HybridIndex.open(tmp_path)
    update_fake(tmp_path, PAGES, replace=True)
    assert len(HybridIndex.open(tmp_path)) == 1


def test_an_index_of_the_first_format_is_one_to_replace(tmp_path: Path) -> None:
    folder = tmp_path / "generations" / "1207e00f6d14"
    folder.mkdir(parents=True)
    (tmp_path / "CURRENT").write_text("1207e00f6d14\n")
    (folder / "manifest.json").write_text('{"format": 1, "generation": "1207e00f6d14"}')
    with pytest.raises(IndexMissingError, match=r"format is 1, and this version reads 2.*--replace"):
        HybridIndex.open(tmp_path)
    assert update_fake(tmp_path, PAGES, replace=True)[0].sequence == 1


def test_no_index_at_all(tmp_path: Path) -> None:
    with pytest.raises(IndexMissingError, match="there is no index yet"):
        HybridIndex.open(tmp_path / "nowhere")


def test_a_pointer_never_leads_out_of_the_folder(build: Build, tmp_path: Path) -> None:
    folder = build(LIBRARY).folder
    shutil.copytree(tmp_path / "generations" / folder, tmp_path / "elsewhere")
    (tmp_path / "CURRENT").write_text("../elsewhere\n")
    with pytest.raises(IndexMissingError):
        HybridIndex.open(tmp_path)
