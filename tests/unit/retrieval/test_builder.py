import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serving.answer.errors import IndexMissingError
from serving.answer.types import Passage
from serving.retrieval.builder import build_index
from serving.retrieval.generations import IndexLockedError
from serving.retrieval.index import HybridIndex

from .conftest import LIBRARY, Build, make_passage
from .fakes import FakeEmbedder


def generations(root: Path) -> set[str]:
    return {folder.name for folder in (root / "generations").iterdir()}


def failing(passages: list[Passage]) -> Iterator[Passage]:
    yield from passages
    raise RuntimeError("killed")


def test_the_manifest_describes_the_generation(build: Build, tmp_path: Path) -> None:
    manifest = build(LIBRARY)
    index = HybridIndex.open(tmp_path, "fake")
    assert index.manifest == manifest
    assert len(index) == manifest.passages == len(LIBRARY)
    assert (manifest.embedder, manifest.dimension, manifest.corpus) == ("fake", 32, "a test")
    assert manifest.built_at.tzinfo is not None
    folder = tmp_path / "generations" / manifest.generation
    assert {path.name for path in folder.iterdir()} == {"lexical", "vectors.faiss", "manifest.json"}


def test_the_same_passages_make_the_same_generation(build: Build, tmp_path: Path) -> None:
    first = build(LIBRARY)
    assert build(LIBRARY) == first
    assert build(LIBRARY[::-1]).generation != first.generation
    other = [*LIBRARY[:-1], make_passage(LIBRARY[-1].text, "Another title")]
    assert build(other).generation != first.generation
    assert not list(tmp_path.glob("building-*"))


def test_passages_with_the_same_id_are_indexed_once(build: Build, embedder: FakeEmbedder) -> None:
    assert build([*LIBRARY, *LIBRARY, LIBRARY[0]]).passages == len(LIBRARY)
    assert sum(len(call) for call in embedder.calls) == len(LIBRARY)
    assert max(len(call) for call in embedder.calls) <= 3


@pytest.mark.parametrize("total", [7, None])
def test_progress_counts_what_is_read(tmp_path: Path, embedder: FakeEmbedder, total: int | None) -> None:
    told: list[tuple[int, int | None]] = []
    build_index(
        LIBRARY if total else iter(LIBRARY),
        tmp_path,
        embedder,
        embedder_name="fake",
        corpus="c",
        progress=lambda done, of: told.append((done, of)),
        batch=3,
    )
    assert told == [(3, total), (6, total), (7, total)]


def test_the_generation_before_is_kept_for_open_readers(build: Build, tmp_path: Path) -> None:
    built = [build(LIBRARY[:1]).generation]
    reader = HybridIndex.open(tmp_path)
    for count in (2, 3, 4):
        built.append(build(LIBRARY[:count]).generation)
        assert HybridIndex.open(tmp_path).generation == built[-1]
    assert generations(tmp_path) == set(built[-2:])
    assert reader.lexical("itertools.chain", 1)[0].title == "itertools.chain"


@pytest.mark.parametrize("read", [0, 4])
def test_a_builder_that_dies_leaves_the_generation_that_answered(build: Build, tmp_path: Path, read: int) -> None:
    before = build(LIBRARY[:2]).generation
    with pytest.raises(RuntimeError, match="killed"):
        build(failing(LIBRARY[:read]))
    assert HybridIndex.open(tmp_path).generation == before
    assert HybridIndex.open(tmp_path).lexical("itertools.chain", 1)
    assert generations(tmp_path) == {before}
    assert not list(tmp_path.glob("building-*"))


def test_leftovers_of_a_killed_process_are_cleaned(build: Build, tmp_path: Path) -> None:
    before = build(LIBRARY[:2]).generation
    code = (
        "import os, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from serving.answer.types import Passage\n"
        "from serving.retrieval.builder import build_index\n"
        "def passages():\n"
        "    yield from (Passage(id=str(n), text='text') for n in range(9))\n"
        "    os._exit(9)\n"
        "build_index(passages(), Path(sys.argv[1]), lambda texts: np.ones((len(texts), 4)), embedder_name='x',\n"
        "            corpus='x', progress=lambda *_: None, batch=2)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, cwd=Path(__file__).parents[3])
    assert killed.returncode == 9
    assert len(list(tmp_path.glob("building-*"))) == 1
    assert HybridIndex.open(tmp_path).generation == before
    build(LIBRARY[:3])
    assert not list(tmp_path.glob("building-*"))
    assert len(HybridIndex.open(tmp_path)) == 3


def test_an_empty_corpus_is_refused_and_changes_nothing(build: Build, tmp_path: Path) -> None:
    before = build(LIBRARY).generation
    with pytest.raises(ValueError, match="nothing to index"):
        build([])
    assert HybridIndex.open(tmp_path).generation == before


@pytest.mark.parametrize(
    "vectors",
    [np.ones((2, 4)), np.ones(3), np.ones((3, 0)), np.full((3, 4), np.inf)],
    ids=["rows", "flat", "no", "inf"],
)
def test_embeddings_that_do_not_fit_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    with pytest.raises(ValueError, match="embeddings"):
        build_index(
            LIBRARY[:3],
            tmp_path,
            lambda _texts: vectors,
            embedder_name="bad",
            corpus="c",
            progress=lambda *_: None,
        )
    with pytest.raises(IndexMissingError):
        HybridIndex.open(tmp_path)


def test_one_builder_at_a_time(tmp_path: Path, embedder: FakeEmbedder, build: Build) -> None:
    with (tmp_path / "build.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(IndexLockedError, match="another process is building"):
            build_index(
                LIBRARY,
                tmp_path,
                embedder,
                embedder_name="fake",
                corpus="c",
                progress=lambda *_: None,
                lock_timeout_s=0.1,
            )
    assert embedder.calls == []
    assert build(LIBRARY).passages == len(LIBRARY)


def damage(path: Path, content: bytes | None) -> None:
    # A new file, not the old one overwritten: tantivy maps its files into memory.
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if content is not None:
        path.write_bytes(content)


@pytest.mark.parametrize(
    "content", [None, b"", b"garbage", b"\xff\xfe" * 200], ids=["missing", "empty", "text", "bytes"]
)
@pytest.mark.parametrize("part", ["CURRENT", "manifest.json", "vectors.faiss", "lexical", "lexical/meta.json"])
def test_a_damaged_index_says_what_to_run_and_can_be_built_again(
    build: Build, tmp_path: Path, part: str, content: bytes | None
) -> None:
    folder = tmp_path / "generations" / build(LIBRARY).generation
    damage(tmp_path / part if part == "CURRENT" else folder / part, content)
    with pytest.raises(IndexMissingError, match="answer index --installed") as raised:
        HybridIndex.open(tmp_path)
    assert str(tmp_path) not in raised.value.message
    build(LIBRARY)
    assert len(HybridIndex.open(tmp_path)) == len(LIBRARY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 0}, "format is 0"),
        ({"passages": 3}, "do not belong together"),
        ({"dimension": 5}, "do not belong together"),
        ({"built_at": 7}, "missing or unknown fields"),
        ({"surprise": 1}, "missing or unknown fields"),
    ],
)
def test_an_incompatible_manifest_is_refused(
    build: Build, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "generations" / build(LIBRARY).generation / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(IndexMissingError, match=message):
        HybridIndex.open(tmp_path)


def test_truncated_segments_are_noticed(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "generations" / build(LIBRARY).generation / "lexical"
    segment = next(folder.glob("*.store"))
    damage(segment, segment.read_bytes()[:-8])
    with pytest.raises(IndexMissingError):
        HybridIndex.open(tmp_path)


def test_an_index_of_another_embedder_is_refused(build: Build, tmp_path: Path) -> None:
    build(LIBRARY)
    with pytest.raises(IndexMissingError, match=r"'fake', not 'other'"):
        HybridIndex.open(tmp_path, "other")


def test_no_index_at_all(tmp_path: Path) -> None:
    with pytest.raises(IndexMissingError, match="there is no index yet"):
        HybridIndex.open(tmp_path / "nowhere")


def test_a_pointer_never_leads_out_of_the_folder(build: Build, tmp_path: Path) -> None:
    generation = build(LIBRARY).generation
    shutil.copytree(tmp_path / "generations" / generation, tmp_path / "elsewhere")
    (tmp_path / "CURRENT").write_text("../elsewhere\n")
    with pytest.raises(IndexMissingError):
        HybridIndex.open(tmp_path)
