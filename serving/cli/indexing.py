"""``answer index``: text in, a new index generation out, with progress."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from models.catalog import Catalog, fingerprint
from serving.answer.errors import IndexLockedError, IndexMissingError
from serving.answer.types import Passage
from serving.cli.console import Steps
from serving.retrieval.manifest import Manifest
from serving.settings import Settings

LOCK_TIMEOUT_S = 900.0


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


def index_installed(settings: Settings, steps: Steps) -> Manifest:
    """Indexes the READMEs of installed packages and the standard library's docstrings."""
    from serving.retrieval.installed import InstalledReport, installed_passages

    steps.say("reading the READMEs of installed packages and the standard library's docstrings")
    report = InstalledReport()
    passages = list(installed_passages(report))
    steps.say(
        f"read {report.readme_passages} passages of {report.distributions - report.without_readme} READMEs and "
        f"{report.stdlib_passages} docstrings of {report.modules} standard library modules"
    )
    return _build(passages, settings, "installed packages and the standard library", steps)


def index_paths(paths: list[Path], settings: Settings, steps: Steps) -> Manifest:
    """Indexes text files and folders. Raises ``FileNotFoundError``, and ``ValueError`` when they hold no text."""
    from serving.retrieval.readers import FileReport, read_passages

    report = FileReport()
    manifest = _build(read_passages(paths, report), settings, ", ".join(path.name for path in paths), steps)
    skipped = ", ".join(f"{count} {reason.value}" for reason, count in sorted(report.skipped.items()))
    steps.say(f"read {report.files} files" + (f"; passed over: {skipped}" if skipped else ""))
    return manifest


def _build(passages: Iterable[Passage], settings: Settings, corpus: str, steps: Steps) -> Manifest:
    from transformers.utils.logging import disable_progress_bar

    from models.embedder import Embedder
    from serving.retrieval.builder import build_index

    chosen = settings.models.embedder
    steps.say("loading the embedder")
    disable_progress_bar()  # type: ignore[no-untyped-call]  # the steps say what goes on
    embedder = Embedder(
        Catalog(settings.home).locate(chosen.model),
        threads=chosen.threads,
        dtype=chosen.dtype,
        max_tokens=chosen.max_tokens,
        batch_tokens=chosen.batch_tokens,
        device=chosen.device,
        memory_share=chosen.gpu_memory_share,
    )
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
