"""Our encoder runtime and rerank server beside their peers, on the same weights, in one run.

    python scripts/bench_encoders.py                      # the comparison, overload, and what batching costs
    python scripts/bench_encoders.py --parts soak         # memory over 100,000 requests
    python scripts/bench_encoders.py --device cuda        # the runtime alone, on a GPU

Requests hold 100 documents whose lengths are drawn as retrieved passages have them. The peers are CrossEncoder of
sentence-transformers behind a plain FastAPI route, vLLM's /rerank and infinity's; each runs in a virtual environment of
its own, which is made the first time and kept (--peers). All compute in one dtype. Ends with one JSON line; exits 0
when every bar holds, 1 when one falls short, 2 when it could not run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from encoders import computing, weights
from encoders.comparing import Amount, compare
from encoders.enduring import overload, soak
from encoders.servers import infinity, ours, plain, running, vllm
from small_index import indexed

from models.cpu import Dtype, cpu_flags, resolve_dtype
from serving.answer.errors import AnswerError
from serving.cli.console import Steps
from serving.cli.options import effective
from serving.settings import SettingsError

PARTS = ("compare", "overload", "overhead", "soak")
PEERS = {"plain": plain, "vllm": vllm, "infinity": infinity}


def measured(chosen: argparse.Namespace, folder: Path, steps: Steps) -> dict[str, Any]:
    """All parts that were asked for, and their bars together."""
    settings = indexed(effective(None, None).settings, folder / "index", steps)
    model = weights.cross_encoder(settings.home)
    dtype = resolve_dtype(chosen.dtype, flags=cpu_flags())
    found: list[dict[str, Any]] = []
    if "overhead" in chosen.parts:
        found.append(_overhead(chosen, model, settings.home, dtype, steps))
    launch = ours(settings.home, settings.index_path, model, dtype, chosen.backend)
    if "compare" in chosen.parts:
        launches = [launch, *(PEERS[name](chosen.peers, model, dtype, steps) for name in chosen.against)]
        with ExitStack() as up:
            servers = [up.enter_context(running(one, folder, steps)) for one in launches]
            amount = Amount(requests=8, turns=1, light=6) if chosen.quick else Amount()
            found.append(asyncio.run(compare(servers, str(model), amount, steps)))
    if {"overload", "soak"} & set(chosen.parts):
        with running(launch, folder, steps) as server:
            if "overload" in chosen.parts:
                found.append(asyncio.run(overload(server, str(model), steps)))
            if "soak" in chosen.parts:
                found.append(asyncio.run(soak(server, str(model), chosen.requests, steps)))
    return {"dtype": dtype, "backend": chosen.backend, "cores": os.cpu_count(), **_joined(found)}


def _overhead(chosen: argparse.Namespace, model: Path, home: Path, dtype: Dtype, steps: Steps) -> dict[str, Any]:
    rounds = 3 if chosen.quick else 7
    options = {"home": home, "dtype": dtype, "backend": chosen.backend, "threads": os.cpu_count() or 1}
    return computing.overhead(model, rounds=rounds, steps=steps, **options)


def on_gpu(chosen: argparse.Namespace, steps: Steps) -> dict[str, Any]:
    home = effective(None, None).settings.home
    models = {"MiniLM": weights.cross_encoder(home), "RoBERTa-large": weights.roberta_large(home)}
    seconds = 10.0 if chosen.quick else 40.0
    return _joined([computing.on_gpu(model, name, seconds, steps) for name, model in models.items()])


def _joined(found: list[dict[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {"bars": [bar for part in found for bar in part["bars"]]}
    for part in found:
        joined |= {key: value for key, value in part.items() if key != "bars"}
    return joined


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=["overhead", "compare", "overload"])
    options.add_argument("--against", nargs="+", choices=sorted(PEERS), default=sorted(PEERS), help="the peers")
    options.add_argument("--peers", type=Path, default=Path.home() / ".cache" / "openindex-answer" / "peers")
    options.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto", help="of all servers")
    options.add_argument("--backend", choices=["torch", "openvino"], default="openvino", help="of ours")
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--requests", type=int, default=100_000, help="of the soak")
    options.add_argument("--quick", action="store_true", help="fewer requests and turns")
    options.add_argument("--json", action="store_true", help="print the JSON line alone")
    chosen = options.parse_args()
    steps = Steps()
    try:
        with tempfile.TemporaryDirectory(prefix="answer-bench-") as folder:
            found = on_gpu(chosen, steps) if chosen.device == "cuda" else measured(chosen, Path(folder), steps)
    except (AnswerError, SettingsError, RuntimeError) as error:
        print(f"could not run: {error}", file=sys.stderr)
        print(json.dumps({"bars": []}))
        return 2
    if not chosen.json:
        for bar in found["bars"]:
            print(f"{bar['name']:60} {bar['value']:8}   {'ok' if bar['ok'] else 'short of ' + str(bar['target'])}")
    print(json.dumps(found))
    return 0 if all(bar["ok"] for bar in found["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
