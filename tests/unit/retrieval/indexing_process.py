"""A process that indexes with a fake embedder, to be killed: ``python -m … ROOT DOCUMENTS ROUND [RENAME]``.

Each round changes every document, so that all files of the index are written anew. With RENAME it kills itself before
it renames something for that time: those are the moments at which an index changes hands.
"""

import os
import signal
import sys
from pathlib import Path

from serving.retrieval.documents import Document

from .conftest import document, embed_fake, update_fake
from .fakes import FakeEmbedder


def pages(count: int, number: int) -> list[Document]:
    return [document(f"{n}.md", f"# Page {n}\n\nRound{number} says word{n} of page {n}.") for n in range(count)]


def index(root: Path, count: int, number: int) -> None:
    update_fake(root, pages(count, number))
    embed_fake(root, FakeEmbedder(), rows=count // 4)


def die_before_rename(count: int) -> None:
    renames = iter(range(1, count + 1))

    def hook(event: str, _arguments: object) -> None:
        if event == "os.rename" and next(renames, count) == count:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    if len(sys.argv) > 4:
        die_before_rename(int(sys.argv[4]))
    index(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
