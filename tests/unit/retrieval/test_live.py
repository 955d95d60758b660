import asyncio
import logging
import shutil
from pathlib import Path

import pytest

from serving.retrieval.index import HybridIndex
from serving.retrieval.live import LiveIndex
from serving.retrieval.retriever import IndexRetriever

from .conftest import document, embed_fake, update_fake
from .fakes import FakeEmbedder
from .test_retriever import never, soon

PAGES = [document(f"{n}.md", f"All about number{n}.") for n in range(4)]


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_newer_generation_is_taken_up(tmp_path: Path, embedder: FakeEmbedder) -> None:
    first, _ = update_fake(tmp_path, PAGES[:2])
    live = LiveIndex(tmp_path, FakeClock())
    retriever = IndexRetriever(lambda: live.index, embedder.embed)
    before = live.index
    assert not live.refresh()
    assert await retriever.version() == f"{first.generation}+0%"
    second, _ = update_fake(tmp_path, PAGES)
    assert await retriever.lexical("number3", 1, deadline=soon()) == []
    assert live.refresh()
    assert await retriever.version() == f"{second.generation}+0%"
    assert len(await retriever.lexical("number3", 1, deadline=soon())) == 1
    embed_fake(tmp_path, embedder, rows=1)
    assert live.refresh()
    assert await retriever.version() == second.generation
    # Its folder is gone by now; a search that began with it still ends.
    assert not before.folder.exists()
    assert before.lexical("number1", 1)[0].text == "All about number1."


async def test_a_call_keeps_the_index_it_began_with(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    live = LiveIndex(tmp_path, FakeClock())
    search = asyncio.ensure_future(
        IndexRetriever(lambda: live.index, embedder.embed).hybrid("number1", 1, deadline=soon())
    )
    await asyncio.sleep(0)
    update_fake(tmp_path, PAGES[2:])
    live.refresh()
    assert [passage.title for passage in await search] in (["1.md"], [])


def test_a_generation_that_cannot_be_opened_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, opened = FakeClock(), []

    def opener(root: Path, embedder_name: str | None) -> HybridIndex:
        opened.append(embedder_name)
        return HybridIndex.open(root, embedder_name)

    first, _ = update_fake(tmp_path, PAGES[:2])
    live = LiveIndex(tmp_path, clock, opener=opener, retry_s=60)
    second, _ = update_fake(tmp_path, PAGES)
    folder = tmp_path / "generations" / second.folder
    aside = folder.rename(tmp_path / "aside")
    with caplog.at_level(logging.WARNING):
        assert not live.refresh()
        assert not live.refresh()
    assert live.index.generation == first.generation
    assert live.index.lexical("number1", 1) != []
    assert len(opened) == 2
    [record] = caplog.records
    assert first.generation in record.message
    assert "answer index" in record.message
    shutil.copytree(aside, folder)
    assert not live.refresh()
    clock.now = 61.0
    assert live.refresh()
    assert live.index.generation == second.generation


def test_vectors_of_another_embedder_are_left_alone(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    live = LiveIndex(tmp_path, FakeClock())
    embed_fake(tmp_path, embedder, name="other")
    assert not live.refresh()
    assert live.index.manifest.embedder == "fake"
    update_fake(tmp_path, PAGES)
    assert live.refresh()


async def test_each_half_can_be_switched_off(tmp_path: Path, embedder: FakeEmbedder) -> None:
    update_fake(tmp_path, PAGES)
    embed_fake(tmp_path, embedder)
    index = HybridIndex.open(tmp_path)
    words = IndexRetriever(lambda: index, never, vectors=False)
    assert [p.title for p in await words.hybrid("number1", 4, deadline=soon())] == ["1.md"]
    vectors = IndexRetriever(lambda: index, embedder.embed, words=False)
    found = await vectors.hybrid("1.md\nAll about number1.", 4, deadline=soon())
    assert (len(found), found[0].title) == (4, "1.md")
    assert found[0].score == pytest.approx(1 / 6)
    # Bare search asks for words, whatever is fused into answers.
    assert [p.title for p in await vectors.lexical("number1", 4, deadline=soon())] == ["1.md"]
    with pytest.raises(ValueError, match="words or vectors"):
        IndexRetriever(lambda: index, never, words=False, vectors=False)
