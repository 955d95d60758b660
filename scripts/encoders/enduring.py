"""Our server under more than it can do, and under very many requests."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from encoders.load import DOCUMENTS, asking, bar, bodies, closed_loop, open_loop, percentile
from encoders.servers import Server

from serving.cli.console import Steps

TIMES, LASTS_S, LEAST_GOODPUT = 5.0, 30.0, 0.95
MOST_REJECTING_S, MOST_RECOVERY_S, NORMAL = 0.05, 5.0, 2.0
MOST_GROWTH, SETTLED = 1.05, 0.2


async def overload(server: Server, model: str, steps: Steps) -> dict[str, Any]:
    """Five times what the server can do, for half a minute; then how soon it is as before."""
    one = bodies(7, 1, model=model, documents=1)[0]
    async with httpx.AsyncClient(timeout=300.0, limits=httpx.Limits(max_connections=None)) as client:
        ask = asking(client, server.url)
        usual_s = percentile([r.took_s for r in (await closed_loop(ask, [one] * 20, clients=1)).served], 0.5)
        full = await closed_loop(ask, bodies(3, 32, model=model), clients=4)
        capacity = full.pairs_per_s()
        steps.say(f"capacity is {capacity:.1f} pairs a second")
        per_s = TIMES * capacity / DOCUMENTS
        given = bodies(4, round(per_s * LASTS_S), model=model)
        replies = await open_loop(ask, given, per_s=per_s, seed=4)
        last_s = max(reply.ended_s - reply.took_s for reply in replies.all)  # when the last request was due
        ended = time.perf_counter() - (replies.lasted_s - last_s)
        recovery_s = await _recovery_s(ask, one, usual_s, since=ended)
    share = replies.pairs_per_s() / capacity
    rejecting_s = percentile([reply.took_s for reply in replies.rejected], 0.99)
    steps.say(
        f"at {TIMES:g} times capacity: {share:.0%} of it served, {len(replies.rejected)} of {len(given)} rejected"
    )
    return {
        "bars": [
            bar("goodput over capacity at 5 times the load", share, LEAST_GOODPUT, at_least=True, n=len(given)),
            bar("p99 of a rejection, s", rejecting_s, MOST_REJECTING_S, at_least=False, n=len(replies.rejected)),
            bar("as before after the load, s", recovery_s, MOST_RECOVERY_S, at_least=False),
        ],
        "overload": {
            "capacity_pairs_per_s": round(capacity, 1),
            "served": len(replies.served),
            "rejected": len(replies.rejected),
            "failed": len(replies.failed),
            "rejection_p50_s": round(percentile([reply.took_s for reply in replies.rejected], 0.5), 4),
        },
    }


async def _recovery_s(ask: Any, one: bytes, usual_s: float, *, since: float) -> float:
    """Seconds from the end of the load until a small request takes about what it did before it, three times running."""
    quick = 0
    while quick < 3:
        began = time.perf_counter()
        status, _ = await ask(one)
        took_s = time.perf_counter() - began
        quick = quick + 1 if status == 200 and took_s <= NORMAL * usual_s + 0.02 else 0
        if time.perf_counter() - since > 120:
            return float("inf")
        await asyncio.sleep(0.05)
    return time.perf_counter() - since


async def soak(server: Server, model: str, requests: int, steps: Steps) -> dict[str, Any]:
    """Memory of all the server's processes while it answers ``requests`` small requests.

    Raises RuntimeError when more than one in a hundred is not answered.
    """
    given = bodies(5, 500, model=model, documents=2, longest=12)
    portion = max(1, requests // 20)
    sizes: list[int] = []
    rates: list[float] = []
    failed = 0
    async with httpx.AsyncClient(timeout=300.0) as client:
        ask = asking(client, server.url)
        for done in range(portion, requests + 1, portion):
            replies = await closed_loop(ask, [given[at % len(given)] for at in range(portion)], clients=8)
            failed += len(replies.all) - len(replies.served)
            if failed > done // 100:
                raise RuntimeError(f"{failed} of {done} requests failed: of memory that says nothing")
            sizes.append(resident(server.process))
            rates.append(len(replies.all) / replies.lasted_s)
            steps.say(f"{done} of {requests} requests, {rates[-1]:.0f} a second, {sizes[-1] / 2**20:.0f} MiB resident")
    growth = max(sizes[-3:]) / sizes[round(SETTLED * len(sizes)) - 1]
    name = "memory at the end over memory a fifth of the way"
    mib = [round(size / 2**20) for size in sizes]
    return {
        "bars": [bar(name, growth, MOST_GROWTH, at_least=False, n=requests)],
        "soak": {"mib": mib, "requests_per_s": round(median(rates), 1), "failed": failed},
    }


def resident(root: int) -> int:
    """Bytes of memory that a process and all below it hold; what they share counts for each."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    below = {root}
    while more := {process for process, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(map(_resident, below))


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
