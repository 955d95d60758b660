"""``answer index``: text in, a new index generation out, with progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from models.catalog import Catalog, fingerprint
from serving.answer.errors import IndexLockedError, IndexMissingError
from serving.answer.types import Passage
from serving.cli.console import Steps
from serving.retrieval.manifest import Manifest
from serving.retrieval.sources.options import Options
from serving.settings import Settings

if TYPE_CHECKING:  # torch takes its time to import
    from models.embedder import Embedder

LOCK_TIMEOUT_S = 900.0


def embedder_name(settings: Settings) -> str:
    """What names the embedder's weights in an index, without loading them."""
    folder = Catalog(settings.home).locate(settings.models.embedder.model)
    return f"{folder.name}@{fingerprint(folder)}"


def load_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name, in this process."""
    from transformers.utils.logging import disable_progress_bar

    from models.embedder import Embedder

    chosen = settings.models.embedder
    disable_progress_bar()  # type: ignore[no-untyped-call]  # the steps say what goes on
    return Embedder(
        Catalog(settings.home).locate(chosen.model),
        threads=chosen.threads,
        dtype=chosen.dtype,
        max_tokens=chosen.max_tokens,
        batch_tokens=chosen.batch_tokens,
        device=chosen.device,
        memory_share=chosen.gpu_memory_share,
    )


def current(settings: Settings) -> Manifest | None:
    """The manifest of the index that answers, or None when there is none that this embedder can search."""
    from serving.retrieval.index import HybridIndex

    try:
        return HybridIndex.open(settings.index_path, embedder_name(settings)).manifest
    except IndexMissingError:
        return None


def index_installed(settings: Settings, steps: Steps) -> Manifest:
    """Indexes the READMEs of installed packages and the standard library's docstrings."""
    from serving.retrieval.chunking import passages
    from serving.retrieval.installed import InstalledReport, installed_documents

    steps.say("reading the READMEs of installed packages and the standard library's docstrings")
    report = InstalledReport()
    found = [passage for document in installed_documents(report) for passage in passages(document)]
    steps.say(
        f"read {report.readme_passages} passages of {report.distributions - report.without_readme} READMEs and "
        f"{report.stdlib_passages} docstrings of {report.modules} standard library modules"
    )
    return _build(found, settings, "installed packages and the standard library", steps)


def index_sources(
    inputs: Sequence[str], options: Options, settings: Settings, steps: Steps, report: Path | None = None
) -> Manifest:
    """Indexes files, folders, patterns, git repositories and standard input (``-``).

    ``report`` is written with a JSON line for each file that was passed over. Raises ``SourceError`` for an input that
    cannot be read at all, ``OSError`` for a report that cannot be written, and ``ValueError`` when there is no text.
    """
    from serving.retrieval.chunking import passages
    from serving.retrieval.documents import Document
    from serving.retrieval.sources.reading import read
    from serving.retrieval.sources.tallying import Tally, tallied

    tally = Tally()
    corpus = ", ".join(options.name if given == "-" else Path(given).name or given for given in inputs)
    with report.open("w", encoding="utf-8") if report else nullcontext() as file:
        items = tallied(read(inputs, replace(options, left_out=report), sys.stdin.buffer), tally, file)
        found = (passage for item in items if isinstance(item, Document) for passage in passages(item))
        try:
            return _build(found, settings, corpus, steps)
        finally:
            steps.say(f"read {tally.summary()}" + (f"; each is named in {report}" if report and tally.skipped else ""))


def _build(passages: Iterable[Passage], settings: Settings, corpus: str, steps: Steps) -> Manifest:
    from serving.retrieval.builder import build_index

    steps.say("loading the embedder")
    embedder = load_embedder(settings)
    began = time.perf_counter()

    def progress(done: int, total: int | None) -> None:
        rate = done / max(1e-9, time.perf_counter() - began)
        left = f", {(total - done) / rate:.0f} s left" if total and rate else ""
        steps.every(f"indexed {done}{f' of {total}' if total else ''} passages ({rate:.0f}/s{left})")

    def build(lock_timeout_s: float) -> Manifest:
        return build_index(
            passages,
            settings.index_path,
            embedder.encode,
            embedder_name=embedder.name,
            corpus=corpus,
            progress=progress,
            lock_timeout_s=lock_timeout_s,
        )

    try:
        try:
            manifest = build(lock_timeout_s=0.5)
        except IndexLockedError:
            steps.say("another process is building this index; waiting for it")
            manifest = build(lock_timeout_s=LOCK_TIMEOUT_S)
    finally:
        embedder.close()
    took = time.perf_counter() - began
    steps.say(
        f"indexed {manifest.passages} passages in {took:.0f} s ({manifest.passages / took:.0f}/s): "
        f"generation {manifest.generation} in {settings.index_path}"
    )
    return manifest
