"""Servers side by side, in turns: as fast as they go, and at one load that is the same for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import httpx
from encoders.load import DOCUMENTS, Replies, asking, bar, bodies, closed_loop, open_loop, percentile
from encoders.servers import Server

from serving.cli.console import Steps

TIMES = {"CrossEncoder behind FastAPI": 1.5, "vLLM": 2.0, "infinity": 2.0}
"""How many pairs a second ours is to do for each of a peer's."""
LIGHT, MOST_OF_PEER, MOST_PADDING = 0.6, 0.5, 1.2


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is measured: requests and clients of a turn at saturation, turns, requests of a turn at a light load."""

    requests: int = 12
    clients: int = 4
    turns: int = 2
    light: int = 10


@dataclass(slots=True)
class Measured:
    """What a server did, by turn."""

    pairs_per_s: list[float] = field(default_factory=list)
    light_s: list[float] = field(default_factory=list)
    failed: int = 0
    padding: list[float] = field(default_factory=list)


async def compare(servers: Sequence[Server], model: str, amount: Amount, steps: Steps) -> dict[str, Any]:
    """Raises RuntimeError when a server answers none of the requests."""
    found = {server.name: Measured() for server in servers}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=300.0, limits=limits) as client:
        for server in servers:  # what compiles or allocates on a first request does so now
            replies = await closed_loop(asking(client, server.url), bodies(1, 4, model=model), clients=2)
            _noted(found[server.name], replies)
        for turn in range(amount.turns):
            for server in _in_turn(servers, turn):
                given = bodies(100 + turn, amount.requests, model=model)
                replies = await closed_loop(asking(client, server.url), given, clients=amount.clients)
                _noted(found[server.name], replies)
                found[server.name].pairs_per_s.append(replies.pairs_per_s())
                if server.name == "ours":
                    found[server.name].padding.append(replies.padding())
                steps.say(f"turn {turn + 1}, {server.name}: {replies.pairs_per_s():.1f} pairs a second")
        best = max(median(found[server.name].pairs_per_s) for server in servers if server.name != "ours")
        per_s = LIGHT * best / DOCUMENTS
        for turn in range(amount.turns):
            for server in _in_turn(servers, turn):
                given = bodies(200 + turn, amount.light, model=model)
                replies = await open_loop(asking(client, server.url), given, per_s=per_s, seed=turn)
                _noted(found[server.name], replies)
                found[server.name].light_s += [reply.took_s for reply in replies.served]
                p50_s = _p50(found[server.name])
                steps.say(f"turn {turn + 1}, {server.name}: p50 {p50_s:.2f} s at {per_s:.2f} a second")
    return {"bars": _bars(found), "light_requests_per_s": round(per_s, 3), "servers": _table(found)}


def _in_turn(servers: Sequence[Server], turn: int) -> list[Server]:
    """Each turn begins with another one: what comes first finds the machine otherwise than what comes last."""
    at = turn % len(servers)
    return [*servers[at:], *servers[:at]]


def _noted(measured: Measured, replies: Replies) -> None:
    measured.failed += len(replies.failed) + len(replies.rejected)
    if not replies.served:
        raise RuntimeError(f"no request was answered; statuses: {sorted({reply.status for reply in replies.all})}")


def _p50(measured: Measured) -> float:
    return percentile(measured.light_s, 0.5)


def _bars(found: dict[str, Measured]) -> list[dict[str, Any]]:
    own = found["ours"]
    bars = []
    for name, other in found.items():
        if name == "ours":
            continue
        ratios = _ratios(own.pairs_per_s, other.pairs_per_s)
        value = median(ratios)
        given = {"range": [round(min(ratios), 3), round(max(ratios), 3)], "n": len(ratios)}
        bars.append(bar(f"pairs a second over {name}", value, TIMES[name], at_least=True, **given))
    best = min((name for name in found if name != "ours"), key=lambda name: _p50(found[name]))
    of_best = _p50(own) / _p50(found[best])
    bars.append(bar(f"p50 at {LIGHT:.0%} load over {best}", of_best, MOST_OF_PEER, at_least=False, n=len(own.light_s)))
    bars.append(bar("padded over real tokens", median(own.padding), MOST_PADDING, at_least=False, n=len(own.padding)))
    return bars


def _ratios(own: Sequence[float], other: Sequence[float]) -> list[float]:
    return [mine / theirs for mine, theirs in zip(own, other, strict=True)]


def _table(found: dict[str, Measured]) -> dict[str, Any]:
    shown: Callable[[float], float] = lambda value: round(value, 3)  # noqa: E731
    return {
        name: {
            "pairs_per_s": shown(median(one.pairs_per_s)),
            "p50_s": shown(_p50(one)),
            "p95_s": shown(percentile(one.light_s, 0.95)),
            "failed": one.failed,
        }
        for name, one in found.items()
    }
