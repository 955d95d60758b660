"""Measures the guards on labelled pairs: how often they reject what is supported, how often they catch what is not.

    measure_guards.py [--data FOLDER] [--split dev]

FOLDER holds grounding/SET.SPLIT.jsonl.gz (default: the environment's ANSWER_EVAL_DATA). False rejections are counted
on the pairs labelled supported, with all of them and without those whose label is wrong (label_faults.py); catches on
false claims made from the same pairs. Ends with one JSON line; exits 0, 1 or 2.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from label_faults import FAULTS

from finetune.pairs import swaps
from serving.answer.guards.names import names
from serving.answer.guards.rejecting import GUARDS, Guard, Reading

TRAIN = ("begin", "breaking_nli", "expertqa", "factcg", "factcheck_gpt", "summedits")
SETS = {"dev": (*TRAIN, "fever_symmetric"), "train": TRAIN}
EACH, TOGETHER, CAUGHT = 0.025, 0.05, 0.90
Row = dict[str, str]
Swap = Callable[[str], Iterable[str]]


def supported(folder: Path, split: str) -> list[Row]:
    """The pairs labelled supported, in file order. Raises OSError when a file is missing."""
    rows: list[Row] = []
    for name in SETS[split]:
        with gzip.open(folder / "grounding" / f"{name}.{split}.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows += [row for row in map(json.loads, lines) if row["label"] == 1]
    return rows


def wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of a share, at 95 % by default."""
    if n == 0:
        return 0.0, 1.0
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def bar(name: str, hits: int, n: int, target: str | None) -> dict[str, object]:
    """One measured share, printed as a line of the table. A bar without a target is reported only."""
    share = hits / n if n else 0.0
    low, high = wilson(hits, n)
    ok = n > 0 and (target is None or (share <= float(target[3:]) if target[0] == "<" else share >= float(target[3:])))
    interval, verdict = f"[{low:6.2%}, {high:6.2%}]", "ok" if ok else "SHORT"
    print(f"{name:52} {hits:4}/{n:<4} {share:7.2%}  {interval}  {target or 'reported':9} {verdict}")
    return {
        "name": name,
        "value": round(share, 4),
        "target": target,
        "ok": ok,
        "n": n,
        "ci95": [round(low, 4), round(high, 4)],
    }


def false_rejections(rows: list[Row], evidence: list[Reading]) -> Iterator[dict[str, object]]:
    rejected: dict[str, set[str]] = {name: set() for name in GUARDS}
    for row, read in zip(rows, evidence, strict=True):
        claim = Reading(row["claim"])
        for name, guard in GUARDS.items():
            if guard(claim, read) is not None:
                rejected[name].add(row["id"])
    ids = {row["id"] for row in rows}
    wrong = FAULTS.keys() & ids
    yield from _shares("all labels", rejected, ids, (None, None))
    if wrong:  # only a split whose labels were reviewed is held to the bars
        reviewed = {name: found - wrong for name, found in rejected.items()}
        yield from _shares("without wrong labels", reviewed, ids - wrong, (f"<= {EACH}", f"<= {TOGETHER}"))
        print(f"wrong labels: {len(wrong)} of {len(ids)}")


def _shares(
    label: str, rejected: dict[str, set[str]], ids: set[str], targets: tuple[str | None, str | None]
) -> Iterator[dict[str, object]]:
    for name, found in rejected.items():
        yield bar(f"falsely rejected by {name}, {label}", len(found), len(ids), targets[0])
    yield bar(f"falsely rejected together, {label}", len(set().union(*rejected.values())), len(ids), targets[1])


def catches(rows: list[Row], evidence: list[Reading]) -> Iterator[dict[str, object]]:
    strangers = sorted({name[-1].text for row in rows[::7] for name in names(Reading(row["claim"]).tokens)})
    kinds: tuple[tuple[str, str, Swap, str | None], ...] = (
        ("numbers", "numbers", swaps.swapped_numbers, f">= {CAUGHT}"),
        ("dates", "dates", swaps.swapped_dates, f">= {CAUGHT}"),
        ("units", "numbers", swaps.swapped_units, f">= {CAUGHT}"),
        ("negation added", "polarity", swaps.negated, f">= {CAUGHT}"),
        ("negation taken away from the claim", "polarity", swaps.unnegated, None),
        ("opposites", "polarity", swaps.swapped_opposites, None),
        ("names", "names", partial(swaps.swapped_names, others=strangers), None),
        ("roles", "roles", swaps.swapped_roles, None),
    )
    for kind, guard, swap, target in kinds:
        found = Counter(
            rejects(GUARDS[guard], false, read)
            for row, read in zip(rows, evidence, strict=True)
            if row["id"] not in FAULTS
            for false in swap(row["claim"])
        )
        yield bar(f"caught: {kind}", found[True], found.total(), target)
        if kind == "negation added":
            denied = Counter(rejects(GUARDS["polarity"], false, read) for false, read in _denials(evidence))
            yield bar("caught: negation taken away from the evidence", denied[True], denied.total(), None)
            found += denied
            yield bar("caught: negation, added and taken away", found[True], found.total(), target)


def _denials(evidence: list[Reading]) -> Iterator[tuple[str, Reading]]:
    """Each once: documents are shared by several claims."""
    seen: set[str] = set()
    for read in evidence:
        for false in swaps.denials(read):
            if false not in seen:
                seen.add(false)
                yield false, read


def rejects(guard: Guard, claim: str, evidence: Reading) -> bool:
    return guard(Reading(claim), evidence) is not None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("ANSWER_EVAL_DATA"))
    parser.add_argument("--split", choices=tuple(SETS), default="dev")
    args = parser.parse_args()
    try:
        if args.data is None:
            raise FileNotFoundError("no data folder: give --data or set ANSWER_EVAL_DATA")
        rows = supported(Path(args.data), args.split)
    except (OSError, ValueError) as error:
        print(f"measure_guards: {error}", file=sys.stderr)
        print(json.dumps({"bars": [], "error": str(error)}))
        return 2
    evidence = [Reading(row["document"]) for row in rows]
    bars = [*false_rejections(rows, evidence), *catches(rows, evidence)]
    print(json.dumps({"bars": bars}))
    return 0 if all(one["ok"] for one in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
