"""Fuzzes the answer contract: scanner, parser, incremental parser, rebuild, insert, validate.

    python scripts/fuzz_contract.py --seconds 600 [--seed 0] [--jobs 2]

Inputs are drawn from an alphabet of what parsers trip over, and from mutations of whole replies. Each is parsed at once
and in random pieces, as text and as bytes, rebuilt, marked, parsed again and validated. Ends with one JSON line; exits
0 when every bar holds, 1 when one falls short, 2 when it could not run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from serving.answer import grounding, sentences
from serving.answer.citations import parse
from serving.answer.rebuilding import rebuild
from serving.answer.statements import Block, Reply
from serving.answer.streaming import Parser
from serving.answer.types import Passage, Span, Support

RATE = 1e6 / 600
"""Inputs a second: a million in ten minutes."""

WORDS = "The tower was built It is tall in Paris he said x If no e.g. Dr. J. U.S. v1.2 3.14 no. 5 os.path.join".split()
MARKS = (
    "[1] [2][3] [1,2] [1-3] [1–3] [[1]] 【1】 ［2］ [^1] [1†a] [9] [0] [3-1] [2019] [٣] ([1]) ([1],[2]) [12345]".split()
)
PUNCTUATION = list(". . . ! ? … 。 ！ ， 、 , ; : \" ' “ ” 「 」 ( ) * ** _ - – = ~ \\ < > | #".split(" "))
SPACES = [" ", " ", " ", "\n", "\n\n", "\t", "\u00a0", "\r\n", "\u2028", "\r"]
SYNTAX = [
    "- ",
    "* ",
    "1. ",
    "2) ",
    "> ",
    "## ",
    "---\n",
    "| a | b |\n",
    "|---|---|\n",
    "|",
    "```\n",
    "```py\n",
    "```",
    "~~~\n",
]
SPANS = [
    "`",
    "``",
    "$",
    "$$",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
    "[",
    "]",
    "](",
    "http://a.b/",
    "[a](b)",
    "<http://a>",
    "a[0]",
    "[1]=",
]
OTHERS = [
    "é",
    "日本",
    "🇯🇵",
    "e\u0301",
    "です",
    "\ue200cite\ue202turn0search0\ue201",
    "\ue200",
    "\ue201",
    "\ud800",
    "\udc00",
    "\0",
    "\u200f",
]
ALPHABET = [WORDS, MARKS, PUNCTUATION, SPACES, SYNTAX, SPANS, OTHERS, [" "], [". "], [" [1]. "], [" [2]."]]

SEEDS = [
    "# The tower\n\nThe tower was built in 1889 [1]. It is tall [2][3].\n\n- One [1].\n- Two [2].\n  1. Three [3]\n",
    "| City | People |\n|---|---:|\n| Paris | 2.1 million [1] |\n| Rome | 3 [2] |\n\nBoth are old [1-3].",
    '> He said "stop [1]." Then he left.[2]\n\n```py\nx[1] = y[2]\n```\n[3]\n\n$$\nx[1]\n$$\nSo $x[1]$ is $5 [1].',
    "東京は首都です【1】。「やめろ。」と言った［2］。円周率は３．１４です[3]。",
    "See [the docs](https://a.example/x_(y)) and `a[1]` [1], [2] and [3]. Mr. J. K. Rowling et al. [1] wrote no. 5.",
]


class Found(NamedTuple):
    """What one worker saw: how many inputs, and the first that broke something, with why."""

    inputs: int
    broken: str
    why: str


def draw(rng: random.Random) -> str:
    """One input: a run of odd pieces, or a seed with some of them spliced in and some of it cut out."""
    if rng.random() < 0.8:
        return "".join(rng.choice(rng.choice(ALPHABET)) for _ in range(rng.randrange(1, 18)))
    text = rng.choice(SEEDS)
    start = rng.randrange(len(text))
    text = text[start : start + rng.randrange(20, 140)]
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(rng.choice(ALPHABET)) + text[at + rng.randrange(3) :]
    return text


def check(text: str, rng: random.Random) -> None:
    """Raises AssertionError when an invariant of the contract is broken for ``text``."""
    passages = rng.choice((0, 1, 3, 3, 3, 12))
    whole = parse(text, passages)
    check_reply(whole, passages)
    check_stream(text, passages, whole, rng)
    check_rebuilt(whole, passages)
    assert "".join(sentences.split(text)) == text, "split loses text"


def check_reply(reply: Reply, passages: int) -> None:
    data = reply.text.encode()
    end = 0
    for statement in reply.statements:
        claim = statement.claim
        assert end <= claim.span.start < claim.span.end <= len(data), "spans overlap or leave the text"
        assert data[claim.span.start : claim.span.end].decode() == claim.text, "a span differs from its text"
        assert claim.chunks == tuple(sorted(set(claim.chunks))), "chunks are unordered"
        assert all(0 <= chunk < passages for chunk in claim.chunks), "a chunk is none"
        assert "\n" not in claim.text or statement.kind is Block.CODE, "a claim holds a line break"
        end = claim.span.end


def check_stream(text: str, passages: int, whole: Reply, rng: random.Random) -> None:
    parser = Parser(passages)
    found = []
    if rng.random() < 0.3:
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        step = rng.randrange(1, 9)
        for at in range(0, len(data), step):
            found += parser.feed_bytes(data[at : at + step])
    else:
        cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(1, 12)))
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            found += parser.feed(text[start:end])
    found += parser.finish()
    assert tuple(found) == whole.statements, "the stream gives other statements"
    assert parser.reply() == whole, "the stream gives another reply"


def check_rebuilt(reply: Reply, passages: int) -> None:
    survivors = [s for s in reply.statements if s.kind in (Block.HEADING, Block.CODE) or s.claim.chunks]
    rebuilt = rebuild(survivors, passages)
    data = rebuilt.text.encode()
    supports: list[Support] = []
    for placed in rebuilt.placed:
        index, span = placed.index, placed.span
        claim = survivors[index].claim
        assert data[span.start : span.end].decode() == claim.text, "a placed span differs from its claim"
        if survivors[index].kind not in (Block.HEADING, Block.CODE):
            supports.append(Support(span, claim.chunks, tuple(0.5 for _ in claim.chunks)))
    check_gaps(data, [placed.span for placed in rebuilt.placed])
    given = [Passage(id=str(number), text="") for number in range(passages)]
    grounding.validate(rebuilt.text, grounding.metadata(rebuilt.text, supports, given))
    again = parse(grounding.insert(rebuilt.text, supports), passages)
    assert again.text == rebuilt.text, "parse(insert(x)) differs from x"
    cited = [(s.claim.span, s.claim.chunks) for s in again.statements if s.kind not in (Block.HEADING, Block.CODE)]
    assert cited == [(support.span, support.chunks) for support in supports], "supports do not parse back"


def check_gaps(data: bytes, spans: list[Span]) -> None:
    ends, starts = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(data)]
    for start, end in zip(ends, starts, strict=True):
        gap = data[start:end].decode()
        if "|---|" not in gap:  # a header row, which stands above the rows that were verified with it
            assert not gap.strip(" \n-*+•◦▪‣·0123456789.)#|`~$"), f"something else is shown: {gap!r}"


def work(seconds: float, seed: int) -> Found:
    rng = random.Random(seed)
    until = time.monotonic() + seconds
    inputs = 0
    while time.monotonic() < until:
        for _ in range(100):
            text = draw(rng)
            try:
                check(text, rng)
            except Exception as error:  # whatever it is, the contract is that there is none
                return Found(inputs, repr(text), f"{type(error).__name__}: {error}")
            inputs += 1
    return Found(inputs, "", "")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, required=True)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1, help="processes; each has a seed of its own")
    chosen = options.parse_args()
    if chosen.seconds <= 0 or chosen.jobs < 1:
        print("--seconds and --jobs must be positive", file=sys.stderr)
        return 2
    with ProcessPoolExecutor(chosen.jobs) as pool:
        seeds = [chosen.seed * chosen.jobs + job for job in range(chosen.jobs)]
        results = list(pool.map(work, [chosen.seconds] * chosen.jobs, seeds))
    broken = [found for found in results if found.broken]
    for found in broken:
        print(f"{found.why}\n  {found.broken}", file=sys.stderr)
    inputs = sum(found.inputs for found in results)
    least = round(RATE * chosen.seconds)
    bars = [
        {"name": "inputs", "value": inputs, "target": least, "ok": inputs >= least},
        {"name": "broken", "value": len(broken), "target": 0, "ok": not broken},
    ]
    print(json.dumps({"bars": bars, "seconds": chosen.seconds, "seeds": seeds}))
    return 0 if all(bar["ok"] for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
