import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from serving.answer.errors import IndexMissingError
from serving.retrieval import dense, updating
from serving.retrieval.embedding import embed_missing, step_rows
from serving.retrieval.generations import EMBED_COMMAND, IndexLockedError, embed_lock
from serving.retrieval.index import HybridIndex
from serving.retrieval.updating import remove
from serving.retrieval.verifying import verify

from .conftest import NOW, document, embed_fake, update_fake
from .fakes import FakeEmbedder

PAGES = [document(f"{n}.md", f"All about number{n}.") for n in range(20)]


class Killed(BaseException):
    """Stands for the end of the process: nothing in the code catches it."""


def texts(embedder: FakeEmbedder) -> list[str]:
    return [text for call in embedder.calls for text in call]


def test_words_answer_before_anything_is_embedded(tmp_path: Path, embedder: FakeEmbedder) -> None:
    manifest, _ = update_fake(tmp_path, PAGES)
    index = HybridIndex.open(tmp_path, "fake")
    assert index.version == manifest.version == f"{manifest.generation}+0%"
    assert index.lexical("number7", 3)[0].title == "7.md"
    [found] = index.hybrid("number7", embedder(["number7"])[0], 3, 9)
    assert found.title == "7.md"
    assert index.hybrid("number7", embedder(["number7"])[0], 3, 9, words=False) == []


def test_what_is_embedded_is_fused_with_what_is_not(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES[:10])
    embed_fake(tmp_path, embedder)
    manifest, _ = update_fake(tmp_path, PAGES)
    index = HybridIndex.open(tmp_path)
    assert index.version == f"{manifest.generation}+50%"
    near = embedder(["3.md\nAll about number3."])[0]
    assert [p.title for p in index.hybrid("number15", near, 2, 1)] == ["15.md", "3.md"]


def test_a_killed_embedder_goes_on_where_it_was(tmp_path: Path, embedder: FakeEmbedder) -> None:
    def dies(some: Sequence[str]) -> NDArray[np.float32]:
        if len(texts(embedder)) >= 11:
            raise Killed
        return embedder(some)

    manifest, _ = update_fake(tmp_path, PAGES)
    with pytest.raises(Killed):
        embed_missing(
            tmp_path, dies, embedder_name="fake", progress=lambda *_: None, batch=3, rows_of_step=lambda _n: 4
        )
    assert HybridIndex.open(tmp_path).version == f"{manifest.generation}+40%"
    embedder.calls.clear()
    assert embed_fake(tmp_path, embedder).version == manifest.generation
    assert len(texts(embedder)) == 12
    assert not verify(tmp_path, lambda _said: None)[1]


def test_progress_counts_what_is_embedded(tmp_path: Path, embedder: FakeEmbedder) -> None:
    told: list[tuple[int, int]] = []
    update_fake(tmp_path, PAGES)
    embed_missing(
        tmp_path,
        embedder,
        embedder_name="fake",
        progress=lambda done, of: told.append((done, of)),
        batch=8,
        rows_of_step=lambda _missing: 16,
    )
    assert told == [(8, 20), (16, 20), (20, 20)]


def test_documents_may_change_while_they_are_embedded(tmp_path: Path, embedder: FakeEmbedder) -> None:
    versions: list[str] = []

    def meanwhile(some: Sequence[str]) -> NDArray[np.float32]:
        if len(embedder.calls) == 1:
            versions.append(remove(tmp_path, ["/docs/0.md"], now=NOW)[0].version)
            update_fake(tmp_path, [document("new.md", "All about novelty.", "/more")], "/more")
        return embedder(some)

    update_fake(tmp_path, PAGES)
    manifest = embed_missing(
        tmp_path, meanwhile, embedder_name="fake", progress=lambda *_: None, batch=5, rows_of_step=lambda _n: 10
    )
    assert versions == [versions[0]]
    assert (manifest.documents, manifest.embedded, manifest.version) == (20, 20, manifest.generation)
    assert sum("number0." in text for text in texts(embedder)) == 1
    assert HybridIndex.open(tmp_path).lexical("number0", 1) == []
    assert not verify(tmp_path, lambda _said: None)[1]


def test_an_index_begun_afresh_takes_no_vectors_of_the_one_before(tmp_path: Path, embedder: FakeEmbedder) -> None:
    def meanwhile(some: Sequence[str]) -> NDArray[np.float32]:
        if len(embedder.calls) == 0:
            update_fake(tmp_path, [document("new.md", "All about novelty.", "/more")], "/more", replace=True)
        return embedder(some)

    update_fake(tmp_path, PAGES)
    manifest = embed_missing(tmp_path, meanwhile, embedder_name="fake", progress=lambda *_: None)
    assert (manifest.passages, manifest.embedded) == (1, 1)
    assert texts(embedder)[-1] == "new.md\nAll about novelty."
    assert not verify(tmp_path, lambda _said: None)[1]


def test_another_embedder_begins_again(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    first = embed_fake(tmp_path, embedder)
    with pytest.raises(IndexMissingError, match=r"'fake', not 'other': run `answer index --embed`"):
        HybridIndex.open(tmp_path, "other")
    wider = FakeEmbedder(dimension=48)
    second = embed_fake(tmp_path, wider, name="other")
    assert (second.dimension, second.embedded, second.embedder) == (48, 20, "other")
    assert second.generation != first.generation
    assert second.generation == update_fake(tmp_path / "x", PAGES, embedder_name="other")[0].generation
    assert HybridIndex.open(tmp_path, "other").version == second.generation


def test_an_update_with_another_embedder_drops_the_vectors(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    embed_fake(tmp_path, embedder)
    manifest, changes = update_fake(tmp_path, PAGES, embedder_name="other")
    assert (manifest.embedded, manifest.segments, changes.unchanged) == (0, (), 20)


@pytest.mark.parametrize(
    "vectors",
    [np.ones((2, 4)), np.ones(3), np.ones((3, 0)), np.full((3, 4), np.inf)],
    ids=["rows", "flat", "no", "inf"],
)
def test_embeddings_that_do_not_fit_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    update_fake(tmp_path, PAGES[:3])
    with pytest.raises(ValueError, match="embeddings"):
        embed_missing(tmp_path, lambda _texts: vectors, embedder_name="fake", progress=lambda *_: None)
    assert HybridIndex.open(tmp_path).manifest.embedded == 0


def test_embeddings_of_another_width_are_refused(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES[:3])
    embed_fake(tmp_path, embedder)
    update_fake(tmp_path, PAGES)
    with pytest.raises(ValueError, match="48 dimensions after 32"):
        embed_fake(tmp_path, FakeEmbedder(dimension=48))


def test_one_embedder_at_a_time_and_writers_need_not_wait_for_it(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES[:3])
    with embed_lock(tmp_path, 0.0):
        with pytest.raises(IndexLockedError, match="another process is embedding"):
            embed_missing(tmp_path, embedder, embedder_name="fake", progress=lambda *_: None, lock_timeout_s=0.1)
        assert update_fake(tmp_path, PAGES)[0].documents == 20
        # Somebody is at it: what is missing is no fault.
        assert verify(tmp_path, lambda _said: None)[1] == []
    [fault] = verify(tmp_path, lambda _said: None)[1]
    assert str(fault) == f"20 of 20 passages have no embedding: {EMBED_COMMAND}"


def test_readers_never_see_half_an_index(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    faults: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                index = HybridIndex.open(tmp_path)
                assert len(index.lexical("number3", 99)) == 1
                found = index.hybrid("", embedder(["x"])[0], 99, 99, words=False)
                assert len(found) == index.manifest.embedded
            except BaseException as error:
                faults.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    embed_fake(tmp_path, FakeEmbedder(), rows=1)
    done.set()
    reader.join()
    assert faults == []


def test_a_folder_may_go_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = HybridIndex.load
    published = iter([PAGES[:2], PAGES[:3]])

    def overtaken(folder: Path, **rest: Any) -> HybridIndex:
        for pages in published:
            update_fake(tmp_path, pages)
        return load(folder, **rest)

    update_fake(tmp_path, PAGES[:1])
    monkeypatch.setattr(HybridIndex, "load", overtaken)
    monkeypatch.setattr(updating, "current_base", lambda _root: None)
    assert len(HybridIndex.open(tmp_path)) == 3


def test_many_steps_leave_few_segments(tmp_path: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "SEAL_ROWS", 16)
    update_fake(tmp_path, PAGES)
    manifest = embed_fake(tmp_path, embedder, rows=1)
    assert manifest.embedded == 20
    assert sum(segment.sealed for segment in manifest.segments) >= 1
    assert len(manifest.segments) <= 8
    assert not verify(tmp_path, lambda _said: None)[1]
    index = HybridIndex.open(tmp_path)
    for page in PAGES:
        [found] = index.hybrid("", embedder([f"{page.title}\n{page.text}"])[0], 1, 1)
        assert found.title == page.title


@pytest.mark.parametrize(("missing", "rows"), [(1, 1024), (60_000, 1200), (10**7, 16_384)])
def test_steps_grow_with_the_work(missing: int, rows: int) -> None:
    assert step_rows(missing) == rows
