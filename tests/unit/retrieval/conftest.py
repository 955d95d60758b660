from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from serving.answer.types import Passage
from serving.retrieval.changes import Changes, Given
from serving.retrieval.documents import Document, Item
from serving.retrieval.embedding import embed_missing
from serving.retrieval.index import HybridIndex
from serving.retrieval.manifest import Manifest
from serving.retrieval.records import passage_id
from serving.retrieval.updating import update

from .fakes import FakeEmbedder

Build = Callable[[Iterable[Passage]], Manifest]


def make_passage(text: str, title: str = "", heading_path: tuple[str, ...] = (), source: str = "docs") -> Passage:
    return Passage(
        id=passage_id(source, None, heading_path, text),
        text=text,
        title=title,
        heading_path=heading_path,
        source=source,
    )


LIBRARY = [
    make_passage("Make an iterator that returns elements from the first iterable.", "itertools.chain", ("itertools",)),
    make_passage("Join one or more path components intelligently.", "os.path.join", ("os.path",)),
    make_passage("Called after the instance has been created, use __init__ to set attributes.", "Data model"),
    make_passage("Functions are named like snake_case_names by convention.", "Naming"),
    make_passage("Classes are written in CamelCase, and HTTPServer is one of them.", "Classes"),
    make_passage("The bakery sells bread, cakes and running shoes.", "Bakery"),
    make_passage("Install it with scikit-learn on Python 3.11 or later.", "Installation"),
]


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def document(name: str, text: str, folder: str = "/docs") -> Document:
    """A file of a folder."""
    return Document(text=text, title=name, source=folder, source_path=name, place=f"{folder}/{name}")


def of_passage(passage: Passage) -> Document:
    return Document(text="", title="", source=passage.source, ready=(passage,), place=f"/docs/{passage.id}")


def update_fake(
    root: Path, items: Iterable[Item], scope: str = "/docs", *, embedder_name: str = "fake", replace: bool = False
) -> tuple[Manifest, Changes]:
    return update(
        root,
        [Given(scope, items)],
        embedder_name=embedder_name,
        now=NOW,
        progress=lambda _documents, _passages: None,
        replace=replace,
    )


def embed_fake(root: Path, embedder: FakeEmbedder, rows: int = 1000, name: str = "fake") -> Manifest:
    return embed_missing(
        root, embedder, embedder_name=name, progress=lambda *_: None, batch=3, rows_of_step=lambda _missing: rows
    )


def build_fake(passages: Iterable[Passage], root: Path, embedder: FakeEmbedder) -> Manifest:
    update_fake(root, map(of_passage, passages))
    return embed_fake(root, embedder)


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def build(tmp_path: Path, embedder: FakeEmbedder) -> Build:
    return lambda passages: build_fake(passages, tmp_path, embedder)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> HybridIndex:
    root = tmp_path_factory.mktemp("index")
    build_fake(LIBRARY, root, FakeEmbedder())
    return HybridIndex.open(root)
