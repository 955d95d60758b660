"""What the tests of reading share."""

from __future__ import annotations

import os
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

from serving.retrieval.documents import Document, Skipped, SkipReason
from serving.retrieval.sources.options import Options
from serving.retrieval.sources.reading import read

DATE = "2024-05-06T07:08:09+00:00"


def items(*inputs: str | Path, stdin: bytes | None = None, **options: Any) -> tuple[list[Document], list[Skipped]]:
    """What reading ``inputs`` gives: documents, and what is passed over."""
    piped = None if stdin is None else BytesIO(stdin)
    found = list(read([str(given) for given in inputs], Options(**options), piped))
    return [item for item in found if isinstance(item, Document)], [item for item in found if isinstance(item, Skipped)]


def texts(*inputs: str | Path, stdin: bytes | None = None, **options: Any) -> dict[str, str]:
    """The text of each document by its path."""
    documents, _ = items(*inputs, stdin=stdin, **options)
    return {document.source_path or document.source: document.text.strip() for document in documents}


def reasons(*inputs: str | Path, stdin: bytes | None = None, **options: Any) -> dict[str, SkipReason]:
    """Why each file was passed over, by its name."""
    _, skipped = items(*inputs, stdin=stdin, **options)
    return {skip.path.rpartition("/")[2]: skip.reason for skip in skipped}


def git(folder: Path, *arguments: str, at: str = DATE) -> str:
    """Runs git in ``folder`` as somebody, at some time, whatever the machine's configuration says."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": at,
        "GIT_COMMITTER_DATE": at,
    }
    identity = ("-c", "user.name=A Tester", "-c", "user.email=tester@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str | bytes], at: str = DATE) -> str:
    """Commits ``files`` with what they hold, all else as it is. Returns the commit."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        git(folder, "add", "--force", name)
    git(folder, "commit", "--quiet", "--message", f"Change {', '.join(files)}", at=at)
    return git(folder, "rev-parse", "HEAD")
