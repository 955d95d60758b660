from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from serving.answer.types import Passage
from serving.retrieval.builder import build_index
from serving.retrieval.index import HybridIndex
from serving.retrieval.manifest import Manifest
from serving.retrieval.records import passage_id

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


def build_fake(passages: Iterable[Passage], root: Path, embedder: FakeEmbedder) -> Manifest:
    return build_index(
        passages,
        root,
        embedder,
        embedder_name="fake",
        corpus="a test",
        progress=lambda _done, _total: None,
        batch=3,
    )


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
