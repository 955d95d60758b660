"""Times the core of the answer contract: parse and insert, on ordinary and on hostile text.

    python scripts/bench_core.py [--quick]

Each text is parsed at 0.1 MB and at 10 MB; what is compared is the CPU time a byte, the best of several runs. Ends with
one JSON line; exits 0 when every bar holds, 1 when one falls short. The speed on ordinary text is an aim and no bar.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable

from serving.answer import grounding
from serving.answer.citations import parse
from serving.answer.streaming import Parser
from serving.answer.types import Span, Support

SMALL, LARGE = 100_000, 10_000_000
MOST_GROWTH = 1.3
AIM_MB_S = 20.0
PASSAGES = 20

ORDINARY = (
    "The tower was built in 1889 for the world's fair and has been open to visitors ever since [1]. It is 330 metres "
    "tall, about the height of an 81-storey building, and it was the tallest structure in the world until 1930 [2][3]. "
    "Dr. Smith measured it again in 2019 with e.g. a laser, which put it at 330.6 m [4].\n\n"
    "- Its three levels are open to visitors and hold two restaurants [5].\n"
    "- It is repainted every seven years, which takes about 60 tons of paint [6, 7].\n\n"
)
TEXTS = {
    "ordinary": ORDINARY,
    "ordinary Japanese": "この塔は一八八九年に建てられ、今も多くの人が訪れている[1]。高さは三三〇メートル[2]。\n\n",
    "one paragraph": "The tower was built in 1889 and it stands to this day in the city of Paris [1]. ",
    "nested brackets": "[",
    "nested brackets, closed": "[[[[a]]]] ",
    "brackets with digits": "[" + "1" * 30,
    "unterminated fences": "```\n~~~ x [1]\n",
    "backtick runs": "` `` ``` ```` [1] ",
    "dollars": "$a $$b \\( \\[ ",
    "markers": "[1][2, 3] ",
    "list items in lines": "- a [1]\n1. b [2]\n> c [3]\n",
    "table rows": "| a | b [1] |\n",
    "terminators": ". ! ? 。 … ",
    "open quotations": '“ ( " 「 a. B ',
    "blanks": " \t",
    "links": "[a](b ",
    "leaks": "\ue200cite\ue202 a ",
}


def seconds(work: Callable[[], object], *, least: float) -> float:
    """The best CPU time of one call, over calls that together take at least ``least`` seconds."""
    best, total = float("inf"), 0.0
    while total < least:
        gc.collect()
        gc.disable()  # as timeit does: what the collector costs depends on what else is alive
        began = time.process_time()
        work()
        took = time.process_time() - began
        gc.enable()
        best, total = min(best, took), total + took
    return best


def repeated(unit: str, size: int) -> str:
    return (unit * (size // len(unit.encode()) + 1))[: size * len(unit) // len(unit.encode())]


def parse_and_insert(text: str) -> Callable[[], object]:
    def work() -> object:
        reply = parse(text, PASSAGES)
        cited = [s for s in reply.statements if s.claim.chunks]
        return grounding.insert(reply.text, [Support(s.claim.span, s.claim.chunks, ()) for s in cited])

    return work


def streamed(text: str, step: int) -> Callable[[], object]:
    def work() -> object:
        parser = Parser(PASSAGES)
        for at in range(0, len(text), step):
            parser.feed(text[at : at + step])
        return parser.finish()

    return work


def many_supports(count: int) -> Callable[[], object]:
    text = "The tower was built in 1889."
    supports = [Support(Span(number % 20, len(text)), (number % 50,), (0.5,)) for number in range(count)]
    return lambda: grounding.insert(text, supports)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="1 MB instead of 10: a look, not a measurement")
    large = LARGE // 10 if options.parse_args().quick else LARGE
    bars: list[dict[str, object]] = []
    speeds: dict[str, float] = {}
    for name, unit in TEXTS.items():
        times = []
        for size in (SMALL, large):
            text = repeated(unit, size)
            times.append(seconds(parse_and_insert(text), least=0.3) / len(text.encode()))
        speeds[name] = round(1e-6 / times[1], 1)
        growth = round(times[1] / times[0], 2)
        print(f"{name:24} {speeds[name]:8.1f} MB/s   {growth:5.2f} x the time a byte of a short text", file=sys.stderr)
        bars.append({"name": f"growth: {name}", "value": growth, "target": MOST_GROWTH, "ok": growth <= MOST_GROWTH})
    for name, unit in (("ordinary", ORDINARY), ("unclosed code", "`a. B c. "), ("unclosed bracket", "[a b. C ")):
        short, long = (
            seconds(streamed(repeated(unit, size), 4), least=0.3) / size for size in (SMALL // 10, large // 10)
        )
        growth = round(long / short, 2)
        speeds[f"{name}, streamed by 4"] = round(1e-6 / long, 1)
        bars.append(
            {"name": f"growth: {name}, streamed", "value": growth, "target": MOST_GROWTH, "ok": growth <= MOST_GROWTH}
        )
    few, many = (seconds(many_supports(count), least=0.2) / count for count in (1000, 10_000))
    growth = round(many / few, 2)
    bars.append(
        {
            "name": "growth: supports on one sentence",
            "value": growth,
            "target": MOST_GROWTH,
            "ok": growth <= MOST_GROWTH,
        }
    )
    aim = {"name": "ordinary MB/s", "value": speeds["ordinary"], "target": AIM_MB_S}
    print(json.dumps({"bars": bars, "aims": [aim | {"ok": speeds["ordinary"] >= AIM_MB_S}], "mb_per_s": speeds}))
    return 0 if all(bar["ok"] for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
