"""The runtime beside the bare model, in this process: what batching costs, and how much of a GPU is used."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from encoders.load import DOCUMENTS, QUERY, WORDS, bar, lengths
from transformers import AutoConfig

from models.cpu import Dtype
from models.encoder import Backend, PairEncoder
from serving.cli.console import Steps

MOST_OVERHEAD, TOGETHER = 1.05, 8
BF16_PEAK = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12}
"""Dense bfloat16 operations a second, from NVIDIA's data sheets."""


def pairs(seed: int, count: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [(" ".join(rng.choices(WORDS, k=length)), QUERY) for length in lengths(rng, count)]


async def _together(encoder: PairEncoder, given: Sequence[tuple[str, str]]) -> float:
    """Seconds that requests of a hundred take which all come at once."""
    requests = [given[at : at + DOCUMENTS] for at in range(0, len(given), DOCUMENTS)]
    began = time.perf_counter()
    await asyncio.gather(*map(encoder.score, requests))
    return time.perf_counter() - began


def overhead(
    model: Path, *, home: Path, dtype: Dtype, backend: Backend, threads: int, rounds: int, steps: Steps
) -> dict[str, Any]:
    """What the batcher and its threads cost, over the same model in a loop over batches sorted beforehand."""
    encoder = PairEncoder(
        model, order="settled_first", threads=threads, device="cpu", dtype=dtype, backend=backend, home=home
    )
    torch.set_num_threads(threads)
    given = pairs(11, TOGETHER * DOCUMENTS)
    encoder.compute(given[:DOCUMENTS])
    ratios, bare_s = [], []
    for turn in range(rounds):
        times = {}
        for batched in (turn % 2 == 0, turn % 2 == 1):
            began = time.perf_counter()
            times[batched] = asyncio.run(_together(encoder, given)) if batched else _timed(encoder, given, began)
        ratios.append(times[True] / times[False])
        bare_s.append(times[False])
        steps.say(f"round {turn + 1}: batched {times[True]:.2f} s, bare {times[False]:.2f} s")
    encoder.close()
    spread = [round(min(ratios), 3), round(max(ratios), 3)]
    return {
        "bars": [
            bar("batcher over the bare model", median(ratios), MOST_OVERHEAD, at_least=False, n=rounds, range=spread)
        ],
        "bare_pairs_per_s": round(len(given) / median(bare_s), 1),  # what a server can come to
    }


def _timed(encoder: PairEncoder, given: Sequence[tuple[str, str]], began: float) -> float:
    encoder.compute(given)
    return time.perf_counter() - began


def on_gpu(model: Path, name: str, seconds: float, steps: Steps) -> dict[str, Any]:
    """Pairs a second, the share of the chip's peak, and the padding, of requests of a hundred that never let up."""
    encoder = PairEncoder(model, order="settled_first", threads=1, device="cuda", dtype="bfloat16")
    given = pairs(13, 64 * DOCUMENTS)
    asyncio.run(encoder.warm_up())
    asyncio.run(_together(encoder, given[: 8 * DOCUMENTS]))
    before = encoder.totals.tokens, encoder.totals.padded_tokens
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        asyncio.run(_together(encoder, given))
        done += len(given)
    took_s = time.perf_counter() - began
    tokens, padded = encoder.totals.tokens - before[0], encoder.totals.padded_tokens - before[1]
    chip = torch.cuda.get_device_name()
    peak = next((rate for known, rate in BF16_PEAK.items() if known in chip), None)
    share = operations(model, tokens, done) / took_s / peak if peak else None
    encoder.close()
    steps.say(f"{name} on {chip}: {done / took_s:.0f} pairs a second")
    return {
        "bars": [bar(f"padded over real tokens, {name}", padded / tokens, 1.2, at_least=False, n=done)],
        name: {
            "chip": chip,
            "pairs_per_s": round(done / took_s),
            "share_of_bf16_peak": None if share is None else round(share, 4),
        },
    }


def operations(model: Path, tokens: int, rows: int) -> float:
    """Multiplications and additions of reading ``tokens`` in ``rows`` of equal length: of the layers' matrices, and of
    attention. Padding does no work that counts.
    """
    config = AutoConfig.from_pretrained(model)
    width, layers = config.hidden_size, config.num_hidden_layers
    matrices = 4 * width * width + 2 * width * config.intermediate_size
    return layers * tokens * (2 * matrices + 4 * width * tokens / rows)
