"""Times the ways of computing an encoder's scores on this CPU: torch, torch.compile, ONNX Runtime, OpenVINO, int8.

    bench_backends.py [--data FOLDER] [--model shipped:encoder] [--only WORD ...] [--json]

FOLDER holds rerank/SET.dev.jsonl.gz (default: the environment's ANSWER_EVAL_DATA). All score the same passes, which are
those of the product, in turns: each pass goes to every backend before the next one, and the first round is not counted.
A backend ranks as torch in float32 does when the mean Kendall tau of a query is at least 0.99 and the same ten are its
first ten; what the product uses unless it is told otherwise should be the fastest of those, to within 5 %. The peers
are installed into --peers, beside the environment. Ends with one JSON line; exits 0, 1 or 2.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np
import torch
from backends import Ask, Inputs, Makers, install
from numpy.typing import NDArray
from scipy.stats import kendalltau

from models.batching import batches
from models.best_pieces import RowScore, best
from models.catalog import Catalog
from models.encoder import PairEncoder
from models.errors import ModelError
from models.head_encoder import open_pairs
from models.pairs import PairRow
from serving.answer.prompt import premise
from serving.answer.types import Passage
from serving.settings import default_home

SETS = ("hotpotqa_distractor", "selqa")
REFERENCE, DEFAULT = "the product, float32", "the product, as it comes"
TAU, FIRST, NEAR = 0.99, 10, 0.95
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a ranking compares with the reference's: means over queries, and the largest difference of a score.

    ``same`` is the share of queries with the same first ten, ``ordered`` of those with them in the same order.
    """

    tau: float
    same: float
    ordered: float
    difference: float

    @property
    def equal(self) -> bool:
        return self.tau >= TAU and self.same == 1.0


def agreement(mine: Sequence[Scores], theirs: Sequence[Scores]) -> Agreement:
    """``mine`` against ``theirs``, the scores of one query's passages each. Raises ValueError without a query."""
    taus, same, ordered, differences = [], [], [], []
    for one, other in zip(mine, theirs, strict=True):
        tau = 1.0 if len(one) < 2 else float(kendalltau(one, other).statistic)
        taus.append(0.0 if np.isnan(tau) else tau)  # one that scores all alike ranks nothing
        first, second = (np.argsort(-scores, kind="stable")[:FIRST].tolist() for scores in (one, other))
        same.append(set(first) == set(second))
        ordered.append(first == second)
        differences.append(float(np.abs(one - other).max()))
    if not taus:
        raise ValueError("there is no query to compare rankings of")
    return Agreement(fmean(taus), fmean(same), fmean(ordered), max(differences))


def bars(speeds: Mapping[str, float], found: Mapping[str, Agreement], n: int) -> list[dict[str, object]]:
    """What the default has to hold: it ranks as the reference does, and none that does is faster by more than 5 %."""
    own = found[DEFAULT]
    best = max((name for name in speeds if found[name].equal or name == REFERENCE), key=lambda name: speeds[name])
    share = speeds[DEFAULT] / speeds[best]
    return [
        {"name": "Kendall tau of the default", "value": round(own.tau, 4), "target": TAU, "ok": own.tau >= TAU, "n": n},
        {"name": "the default's first ten", "value": round(own.same, 4), "target": 1.0, "ok": own.same == 1.0, "n": n},
        {
            "name": f"speed of the default over the fastest of equal ranking ({best})",
            "value": round(share, 3),
            "target": NEAR,
            "ok": share >= NEAR,
            "n": n,
        },
    ]


def queries(folder: Path, most: int) -> list[tuple[str, list[str]]]:
    """Queries with their passages as a reranker reads them, ``most`` of each set. Raises OSError without the files."""
    found = []
    for name in SETS:
        with gzip.open(folder / "rerank" / f"{name}.dev.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for _, line in zip(range(most), lines, strict=False)]
        for row in rows:
            passages = [
                Passage(id=str(at), source=name, title=one.get("title") or "", text=one["text"])
                for at, one in enumerate(row["passages"])
            ]
            found.append((row["query"], [premise(passage) for passage in passages]))
    return found


class Workload:
    """The passes of the product over some queries, and what scores of their rows are as scores of passages."""

    def __init__(self, encoder: PairEncoder, asked: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._encoder = encoder
        self._pairs = [(document, query) for query, documents in asked for document in documents]
        self._ends = np.cumsum([len(documents) for _, documents in asked])[:-1]
        rows, self._read = encoder._read_all(self._pairs, "chunk_max", lambda: None)
        self._batches = list(batches([row.length for row in rows], encoder._batch_tokens))
        self.passes = [self._inputs([rows[at] for at in batch]) for batch in self._batches]
        self.rows, self.pairs = len(rows), len(self._pairs)

    def _inputs(self, rows: list[PairRow]) -> Inputs:
        return self._encoder._inputs(rows)

    def scores(self, outputs: Sequence[NDArray[np.float32]]) -> list[Scores]:
        """The scores of each query's passages, from those of each pass."""
        of_rows = [RowScore(0.0)] * self.rows
        for batch, output in zip(self._batches, outputs, strict=True):
            for at, score in zip(batch, output.tolist(), strict=True):
                of_rows[at] = RowScore(score)
        settled = self._encoder._settled(self._pairs, best(of_rows, self._read))
        return list(np.split(np.array([one.score for one in settled]), self._ends))


@dataclass(slots=True)
class Timed:
    """Seconds of each counted round, on the clock and of the CPU, and what the first round gave."""

    walls: list[float]
    cpus: list[float]
    outputs: list[NDArray[np.float32]]


def measure(asks: Mapping[str, Ask], passes: Sequence[Inputs], rounds: int) -> dict[str, Timed]:
    found = {name: Timed([], [], []) for name in asks}
    for number in range(rounds + 1):
        for timed in found.values():
            timed.walls.append(0.0)
            timed.cpus.append(0.0)
        for at, inputs in enumerate(passes):
            names = list(asks)
            turn = (at + number) % len(names)
            for name in names[turn:] + names[:turn]:
                wall, cpu = time.perf_counter(), time.process_time()
                output = asks[name](inputs)
                found[name].cpus[-1] += time.process_time() - cpu
                found[name].walls[-1] += time.perf_counter() - wall
                if number == 0:
                    found[name].outputs.append(output)
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
    for timed in found.values():
        del timed.walls[0], timed.cpus[0]  # memory is allocated, and kernels are chosen
    return found


def opened(reference: str, dtype: str, threads: int, backend: str = "torch") -> PairEncoder:
    catalog = Catalog(default_home())
    folder = catalog.locate(reference)
    return open_pairs(
        folder,
        order="settled_first",
        head="reranker",
        base=catalog.base_of(folder),
        threads=threads,
        device="cpu",
        dtype=dtype,
        backend=backend,
        home=default_home(),
    )


def own(encoder: PairEncoder) -> Ask:
    """What the product itself does."""

    def ask(inputs: Inputs) -> NDArray[np.float32]:
        with torch.inference_mode():
            scores: NDArray[np.float32] = encoder._scores(dict(inputs))[:, 0].numpy()
        return scores

    return ask


def run(chosen: argparse.Namespace, say: Callable[[str], None], scratch: Path) -> dict[str, object]:
    torch.set_num_threads(chosen.threads)
    exact, plain = (opened(chosen.model, dtype, chosen.threads) for dtype in ("float32", "auto"))
    asked = queries(Path(chosen.data), chosen.queries)
    load = Workload(exact, asked)
    held = f"{len(asked)} queries, {load.pairs} pairs, {load.rows} rows, {len(load.passes)} passes"
    say(f"{held}; {chosen.threads} threads")
    asks = {REFERENCE: own(exact), DEFAULT: own(plain)}
    peers = set() if chosen.no_peers else install(chosen.peers, say)
    if "openvino" in peers:
        for dtype in ("float32", "auto"):
            asks[f"the product, backend openvino, {dtype}"] = own(
                opened(chosen.model, dtype, chosen.threads, "openvino")
            )
    makers = Makers(exact, load.passes[len(load.passes) // 2], threads=chosen.threads, folder=scratch)
    for name, make in makers.all(peers):
        if chosen.only and not any(word in name for word in chosen.only):
            continue
        began = time.perf_counter()
        try:
            ask = make()
            ask(load.passes[0])
        except Exception as error:  # one that cannot be made here is no reason not to measure the others
            say(f"skipped {name}: {type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}")
            continue
        asks[name] = ask
        say(f"ready after {time.perf_counter() - began:.0f} s: {name}")
    timed = measure(asks, load.passes, chosen.rounds)
    scores = {name: load.scores(one.outputs) for name, one in timed.items()}
    found = {name: agreement(one, scores[REFERENCE]) for name, one in scores.items()}
    times = {name: one.cpus if chosen.cpu_time else one.walls for name, one in timed.items()}
    speeds = {name: load.pairs / median(seconds) for name, seconds in times.items()}
    ways = [
        {
            "name": name,
            "pairs_per_s": round(load.pairs / median(timed[name].walls), 1),
            "pairs_per_cpu_s": round(load.pairs / median(timed[name].cpus), 1),
            "tau": round(found[name].tau, 5),
            "same_first_ten": round(found[name].same, 4),
            "in_the_same_order": round(found[name].ordered, 4),
            "largest_difference": round(found[name].difference, 5),
            "equal_ranking": found[name].equal,
        }
        for name in sorted(asks, key=lambda name: -speeds[name])
    ]
    size = {"queries": len(asked), "pairs": load.pairs, "threads": chosen.threads, "rounds": chosen.rounds}
    exact.close()
    plain.close()
    return {"bars": bars(speeds, found, load.pairs), "backends": ways, **size, "load": round(os.getloadavg()[0], 1)}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default=os.environ.get("ANSWER_EVAL_DATA"))
    options.add_argument(
        "--model", default="shipped:encoder", help="a model reference: heads, or a sequence classifier"
    )
    options.add_argument("--queries", type=int, default=20, help="of each set")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options.add_argument("--cpu-time", action="store_true", help="compare CPU seconds: fairer where others compute too")
    options.add_argument("--only", nargs="+", default=(), metavar="WORD", help="backends whose name holds one of these")
    options.add_argument("--peers", type=Path, default=default_home() / "peers", help="where peers are installed")
    options.add_argument("--no-peers", action="store_true", help="torch alone")
    options.add_argument("--json", action="store_true", help="print the JSON line alone")
    chosen = options.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        if chosen.data is None:
            raise FileNotFoundError("no data folder: give --data or set ANSWER_EVAL_DATA")
        with tempfile.TemporaryDirectory(prefix="answer-backends-") as scratch:
            found = run(chosen, say, Path(scratch))
    except (OSError, ValueError, ModelError) as error:
        print(f"bench_backends: {error}", file=sys.stderr)
        print(json.dumps({"bars": [], "error": str(error)}))
        return 2
    if not chosen.json:
        for way in found["backends"]:  # type: ignore[attr-defined]
            print("  ".join(f"{value:<36}" if key == "name" else f"{key} {value}" for key, value in way.items()))
    print(json.dumps(found))
    return 0 if all(bar["ok"] for bar in found["bars"]) else 1  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
