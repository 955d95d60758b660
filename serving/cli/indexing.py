"""``answer index``: text in, a new index generation out, first by words, then with embeddings; with progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from models.catalog import Catalog, fingerprint
from serving.answer.errors import IndexLockedError, IndexMissingError
from serving.cli.console import Steps
from serving.retrieval.changes import Changes, Given
from serving.retrieval.manifest import Manifest
from serving.retrieval.sources.options import Options
from serving.settings import Settings

if TYPE_CHECKING:  # torch takes its time to import
    from models.embedder import Embedder

LOCK_TIMEOUT_S = 86_400.0
INSTALLED = "installed packages and the standard library"

Result = TypeVar("Result")


def embedder_name(settings: Settings) -> str:
    """What names the embedder's weights in an index, without loading them."""
    folder = Catalog(settings.home).locate(settings.models.embedder.model)
    return f"{folder.name}@{fingerprint(folder)}"


def current(settings: Settings) -> Manifest | None:
    """The manifest of the index that answers, or None when there is none that this embedder can search."""
    from serving.retrieval.index import HybridIndex

    try:
        return HybridIndex.open(settings.index_path, embedder_name(settings)).manifest
    except IndexMissingError:
        return None


def mending(settings: Settings) -> list[str] | None:
    """The arguments of ``answer index`` that give this embedder an index to search; None when it has one."""
    from serving.retrieval.index import HybridIndex, OtherEmbedderError

    try:
        HybridIndex.open(settings.index_path, embedder_name(settings))
    except OtherEmbedderError:
        return ["--embed"]
    except IndexMissingError:
        return ["--installed", "--replace"]
    return None


def index_installed(settings: Settings, steps: Steps, *, replace: bool = False) -> Manifest:
    """Indexes the READMEs of installed packages and the standard library's docstrings."""
    from serving.retrieval.installed import InstalledReport, installed_documents

    report = InstalledReport()
    steps.say("reading the READMEs of installed packages and the standard library's docstrings")
    manifest = index_given([Given(INSTALLED, installed_documents(report))], settings, steps, replace=replace)
    steps.say(
        f"read {report.readme_passages} passages of {report.distributions - report.without_readme} READMEs and "
        f"{report.stdlib_passages} docstrings of {report.modules} standard library modules"
    )
    return manifest


def index_sources(
    inputs: Sequence[str],
    options: Options,
    settings: Settings,
    steps: Steps,
    report: Path | None = None,
    *,
    afresh: bool = False,
) -> Manifest:
    """Indexes files, folders, patterns, git repositories and standard input (``-``).

    ``report`` is written with a JSON line for each file that was passed over. Raises ``SourceError`` for an input that
    cannot be read at all, ``OSError`` for a report that cannot be written, and ``ValueError`` when there is no text.
    """
    from serving.retrieval.sources.reading import sources
    from serving.retrieval.sources.tallying import Tally, tallied

    tally = Tally()
    with report.open("w", encoding="utf-8") if report else nullcontext() as file:
        found = sources(inputs, replace(options, left_out=report), sys.stdin.buffer)
        given = [Given(source.scope, tallied(source.items, tally, file)) for source in found]
        try:
            return index_given(given, settings, steps, replace=afresh)
        finally:
            if tally.documents or tally.skipped:
                named = f"; each is named in {report}" if report and tally.skipped else ""
                steps.say(f"read {tally.summary()}{named}")


def index_given(given: Iterable[Given], settings: Settings, steps: Steps, *, replace: bool) -> Manifest:
    """Brings the index up to date with what was given, lets it answer by words, then embeds what is new."""
    from serving.retrieval.updating import update

    began = time.perf_counter()

    def progress(documents: int, passages: int) -> None:
        rate = passages / max(1e-9, time.perf_counter() - began)
        steps.every(f"read {documents} documents; {passages} new passages ({rate:.0f}/s)")

    manifest, changes = waiting(
        steps,
        lambda timeout_s: update(
            settings.index_path,
            given,
            embedder_name=embedder_name(settings),
            now=datetime.now(UTC),
            progress=progress,
            replace=replace,
            lock_timeout_s=timeout_s,
        ),
    )
    steps.say(f"{said(changes)}; {summary(manifest)} in {settings.index_path}")
    return embed(settings, steps)


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


def embed(settings: Settings, steps: Steps) -> Manifest:
    """Embeds what has no embedding yet; the model is loaded only when something is missing."""
    from serving.retrieval.embedding import embed_missing
    from serving.retrieval.index import HybridIndex

    name = embedder_name(settings)
    manifest = HybridIndex.open(settings.index_path).manifest
    if manifest.embedder == name and manifest.embedded == manifest.passages:
        return manifest
    steps.say(f"embedded {manifest.embedded} of {manifest.passages}; BM25 answers meanwhile. Loading the embedder")
    embedder = load_embedder(settings)
    began, first = time.perf_counter(), manifest.embedded

    def progress(done: int, total: int) -> None:
        rate = max(1e-9, done - first) / max(1e-9, time.perf_counter() - began)
        steps.every(f"embedded {done} of {total} passages ({rate:.0f}/s, {(total - done) / rate:.0f} s left)")

    try:
        manifest = waiting(
            steps,
            lambda timeout_s: embed_missing(
                settings.index_path,
                embedder.encode,
                embedder_name=embedder.name,
                progress=progress,
                lock_timeout_s=timeout_s,
            ),
        )
    finally:
        embedder.close()
    steps.say(f"embedded {manifest.embedded} of {manifest.passages} passages in {time.perf_counter() - began:.0f} s")
    return manifest


def waiting(steps: Steps, work: Callable[[float], Result]) -> Result:
    """Does what needs a lock, at once or after saying that it waits."""
    try:
        return work(0.5)
    except IndexLockedError as error:
        steps.say(f"{error.message.partition(' and did')[0]}; waiting for it")
        return work(LOCK_TIMEOUT_S)


def said(changes: Changes) -> str:
    counts = {
        "added": changes.added,
        "updated": changes.updated,
        "removed": changes.removed,
        "unchanged": changes.unchanged,
    }
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"documents: {said or 'none changed'}"


def summary(manifest: Manifest) -> str:
    return f"generation {manifest.version}, {manifest.documents} documents, {manifest.passages} passages"
