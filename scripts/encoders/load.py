"""The load that servers are put under: what is asked, how fast, and what came of it."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

DOCUMENTS = 100
MEAN, SIGMA, LONGEST = 5.0, 0.75, 480
"""Of a document's length in tokens: lognormal, as retrieved passages have it, cut where a pair just fits 512 tokens."""
WORDS = (
    "the of and to in is was that it for on are with as his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so these "
    "would other into has more her two like him see time could no make than first been its who now people my made over"
).split()
"""Each is one token for every model that is measured."""
QUERY = "how do the people of the first time make it out there"


def lengths(rng: random.Random, count: int, longest: int = LONGEST) -> list[int]:
    """Lengths of documents, in tokens."""
    return [min(longest, max(1, round(rng.lognormvariate(MEAN, SIGMA)))) for _ in range(count)]


def bodies(seed: int, count: int, *, model: str, documents: int = DOCUMENTS, longest: int = LONGEST) -> list[bytes]:
    """Requests of the shape that all rerank servers take; no two texts are the same, so that no cache helps."""
    rng = random.Random(seed)
    return [
        json.dumps(
            {
                "model": model,
                "query": QUERY,
                "documents": [" ".join(rng.choices(WORDS, k=length)) for length in lengths(rng, documents, longest)],
            }
        ).encode()
        for _ in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request: seconds since it was due, seconds since the run began, HTTP status (0: none came)."""

    took_s: float
    ended_s: float
    status: int
    pairs: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == 200


@dataclass(frozen=True, slots=True)
class Replies:
    """All replies of a run, and how long it took from its first request to its last reply."""

    all: tuple[Reply, ...]
    lasted_s: float

    @property
    def served(self) -> list[Reply]:
        return [reply for reply in self.all if reply.ok]

    @property
    def rejected(self) -> list[Reply]:
        return [reply for reply in self.all if reply.status == 429]

    @property
    def failed(self) -> list[Reply]:
        return [reply for reply in self.all if not reply.ok and reply.status != 429]

    def pairs_per_s(self) -> float:
        return sum(reply.pairs for reply in self.served) / self.lasted_s

    def padding(self) -> float:
        """Padded over real tokens, as the server's headers tell them."""
        padded, real = (sum(int(r.headers[name]) for r in self.served) for name in ("x-padded-tokens", TOKENS))
        return padded / real


TOKENS = "x-compute-tokens"
Ask = Callable[[bytes], Awaitable[tuple[int, dict[str, str]]]]
"""Sends a body, and gives the status and headers of the reply once it is there whole."""


def asking(client: httpx.AsyncClient, url: str) -> Ask:
    async def ask(body: bytes) -> tuple[int, dict[str, str]]:
        try:
            reply = await client.post(url, content=body, headers={"content-type": "application/json"})
        except httpx.HTTPError:
            return 0, {}
        return reply.status_code, dict(reply.headers)

    return ask


async def closed_loop(ask: Ask, given: Sequence[bytes], *, clients: int, pairs: int = DOCUMENTS) -> Replies:
    """Every client sends its next request once its last one is answered: as fast as the server goes."""
    waiting = iter(given)
    began = time.perf_counter()
    found: list[Reply] = []

    async def one_client() -> None:
        for body in waiting:
            reply = await _ask(ask, body, pairs, due=time.perf_counter(), began=began)
            found.append(reply)

    await asyncio.gather(*(one_client() for _ in range(clients)))
    return Replies(tuple(found), time.perf_counter() - began)


async def open_loop(ask: Ask, given: Sequence[bytes], *, per_s: float, seed: int, pairs: int = DOCUMENTS) -> Replies:
    """Requests come when they come, ``per_s`` a second on average, however many are still unanswered."""
    began = time.perf_counter()
    running = []
    for body, due_s in zip(given, arrivals(random.Random(seed), per_s), strict=False):
        await asyncio.sleep(max(0.0, began + due_s - time.perf_counter()))
        running.append(asyncio.create_task(_ask(ask, body, pairs, due=began + due_s, began=began)))
    found = await asyncio.gather(*running)
    return Replies(tuple(found), time.perf_counter() - began)


def arrivals(rng: random.Random, per_s: float) -> Iterator[float]:
    """Seconds from the beginning at which requests arrive: a Poisson process."""
    at = 0.0
    while True:
        at += rng.expovariate(per_s)
        yield at


async def _ask(ask: Ask, body: bytes, pairs: int, *, due: float, began: float) -> Reply:
    status, headers = await ask(body)
    now = time.perf_counter()
    return Reply(now - due, now - began, status, pairs if status == 200 else 0, headers)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that ``share`` of all are not above; not a number when there is none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def bar(name: str, value: float, target: float, *, at_least: bool, **beside: Any) -> dict[str, Any]:
    """One measured bar; what is not a number does not hold."""
    ok = value >= target if at_least else value <= target
    return {"name": name, "value": round(value, 4), "target": target, "ok": ok, **beside}
