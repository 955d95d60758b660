"""Times verified answers against bare vLLM: the same requests, the same engine, in turns.

    python scripts/bench_answer.py [--rounds 3] [--quick] [--cached-prompts] [--set KEY=VALUE] [--json]

Runs the embedded target's parts in this process, without Ray: the index of ANSWER_HOME, or a small one of the standard
library's docstrings that is made in a temporary folder and says so. Each question goes through the engine; the clock
starts when its prompt reaches the model and stops at the first verified claim and at the answer, rebuilt and grounded.
Then the same request goes to vLLM alone. Which of the two is first alternates, and each figure is the median ratio of
such pairs. vLLM's prefix cache is off, so that both read their whole prompt every time; with ``--cached-prompts`` it is
on and warm for both, which leaves decoding alone to be compared.

The bare time of a sentence is when its last character came. The engine's includes that it must see what follows to know
that the sentence has ended, and the proof. For tokens per second the CPU time of verifier and relevance, which run on
the same cores, is taken off the engine's; ``raw`` says the ratio with it. Ends with one JSON line; exits 0 when every
bar holds, 1 when one falls short, 2 when it could not run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from metering import Meter, MeteredRelevance, MeteredVerifier, Starter
from paired import Written, at_least, at_most, middle, whole_at, without
from small_index import indexed

from models.synthesizer import VllmSynthesizer
from serving.answer.engine import Engine
from serving.answer.errors import AnswerError
from serving.answer.events import Event, Finished, Proven
from serving.answer.prompt import CONTROL_TOKENS
from serving.answer.reference import RareWordRelevance
from serving.answer.routing import RuleClassifier
from serving.answer.seams import Generation, Pair, Parts
from serving.answer.types import Deadline, Outcome, Route, Routing, Verdict
from serving.answer.wire import Answer, Versions
from serving.cli.console import Steps
from serving.cli.evaluating.local import LocalProduct
from serving.cli.indexing import embedder_name
from serving.cli.options import effective
from serving.deployments.handles import RemoteReranker
from serving.deployments.router import counter_of
from serving.deployments.synthesizer import options_of
from serving.retrieval.index import HybridIndex
from serving.retrieval.retriever import IndexRetriever
from serving.settings import Settings, SettingsError

MOST_TO_FIRST, MOST_TO_WHOLE, LEAST_TOKENS = 1.25, 1.10, 0.95
TOGETHER = 8
TIMEOUT_S = 600.0
QUESTIONS = (
    "What does itertools.chain do?",
    "What does functools.reduce do?",
    "What does shutil.rmtree do?",
    "How does heapq.merge combine sorted inputs?",
    "What does json.dumps return?",
    "What does contextlib.suppress do?",
    "What does random.shuffle do?",
    "What does textwrap.dedent do?",
    "What does os.makedirs do?",
    "What does bisect.insort do?",
    "What does collections.Counter count?",
    "What does functools.lru_cache do?",
    "What does shutil.copytree do?",
    "What does itertools.groupby return?",
)


@dataclass(frozen=True, slots=True)
class Answered:
    """One question's way through the engine, in seconds since its prompt was ready."""

    answer: Answer
    first_s: float
    first: str
    whole_s: float


class Bench:
    def __init__(self, engine: Engine, starter: Starter, synthesizer: VllmSynthesizer, meter: Meter) -> None:
        self._engine = engine
        self._starter = starter
        self._synthesizer = synthesizer
        self.meter = meter
        self._requests: dict[str, Generation] = {}
        self._number = 0

    async def answered(self, questions: Sequence[str]) -> list[Answered | None]:
        """The questions through the engine, all at once. None for one that got no verified claim."""
        self._starter.expect(len(questions))
        return await asyncio.gather(*map(self._ask, questions))

    async def bare(self, questions: Sequence[str], *, free: bool = False) -> list[Written]:
        """Bare vLLM on the requests that the engine made of the questions, all at once."""
        return await asyncio.gather(*(self._write(question, free=free) for question in questions))

    async def _ask(self, question: str) -> Answered | None:
        self._number += 1
        request_id = f"bench-{self._number}"
        routing = Routing(Route.SINGLE_PASS, "bench")
        events = self._engine.events(
            question, request_id=request_id, deadline=Deadline.after(TIMEOUT_S, time.monotonic), routing=routing
        )
        came: list[tuple[float, Event]] = [(time.perf_counter(), event) async for event in events]
        began = self._starter.began.pop(request_id, None)
        proven = [(at, event.text) for at, event in came if isinstance(event, Proven)]
        ended, last = came[-1]
        assert isinstance(last, Finished)
        if began is None or not proven or last.answer.outcome is not Outcome.ANSWERED:
            return None
        self._requests[question] = self._starter.requests.pop(request_id)
        return Answered(last.answer, proven[0][0] - began, proven[0][1], ended - began)

    async def _write(self, question: str, *, free: bool) -> Written:
        request = self._requests[question]
        request = replace(request, grammar=None, schema=None) if free else request
        pieces, tokens = [], 0
        began = time.perf_counter()
        async for delta in self._synthesizer.generate(request, deadline=Deadline.after(TIMEOUT_S, time.monotonic)):
            pieces.append((time.perf_counter() - began, delta.text))
            tokens = delta.completion_tokens or tokens
        return Written(tuple(pieces), time.perf_counter() - began, tokens)


class Figures:
    """Pairs of the engine's figure and bare vLLM's."""

    def __init__(self) -> None:
        self.first: list[tuple[float, float]] = []
        self.whole: list[tuple[float, float]] = []
        self.raw: dict[int, list[tuple[float, float]]] = {1: [], TOGETHER: []}
        self.net: dict[int, list[tuple[float, float]]] = {1: [], TOGETHER: []}
        self.judging_s: dict[int, list[float]] = {1: [], TOGETHER: []}
        self.other_texts = 0

    def add(self, made: list[Answered], bare: list[Written], judging_s: float) -> None:
        together = len(made)
        ours, theirs = max(one.whole_s for one in made), max(one.whole_s for one in bare)
        tokens, bare_tokens = sum(one.answer.usage.completion_tokens for one in made), sum(one.tokens for one in bare)
        self.raw[together].append((tokens / ours, bare_tokens / theirs))
        self.net[together].append((tokens / without(ours, judging_s), bare_tokens / theirs))
        self.judging_s[together].append(judging_s)
        if together > 1:
            return
        sentence_s = whole_at(bare[0].pieces, made[0].first, passages=len(made[0].answer.passages))
        if sentence_s is None or tokens != bare_tokens:
            self.other_texts += 1
            return
        self.first.append((made[0].first_s, sentence_s))
        self.whole.append((ours, theirs))

    def bars(self) -> list[dict[str, object]]:
        found = [
            at_most("time to the first verified claim over bare vLLM's first sentence", self.first, MOST_TO_FIRST),
            at_most("time to the whole verified answer over bare generation", self.whole, MOST_TO_WHOLE),
        ]
        for together, pairs in self.net.items():
            name = f"tokens/s over bare vLLM, {together} at a time, without the verifier's compute"
            beside = {
                "raw": round(middle(self.raw[together]), 3),
                "verifier_cpu_ms": round(1e3 * median(self.judging_s[together]), 2),
            }
            found.append(at_least(name, pairs, LEAST_TOKENS, **beside))
        return found

    def seconds(self) -> dict[str, object]:
        """Medians that the ratios are made of."""
        pairs = {
            "first_verified_s": self.first,
            "whole_s": self.whole,
            **{f"tokens_per_s, {together} at a time": pairs for together, pairs in self.raw.items()},
        }
        return {
            name: {"engine": round(median(a for a, _ in of), 3), "bare": round(median(b for _, b in of), 3)}
            for name, of in pairs.items()
        }


async def measured(bench: Bench, questions: Sequence[str], rounds: int, steps: Steps) -> dict[str, object]:
    """Raises ValueError when hardly a question is answered, so that there is nothing to compare."""
    known = []
    for question in questions:
        if (await bench.answered([question]))[0] is None:
            steps.say(f"left out, since no claim was proven: {question}")
            continue
        await bench.bare([question])
        known.append(question)
        steps.every(f"warmed up with {len(known)} questions")
    if len(known) < max(1, len(questions) // 2):
        raise ValueError(f"{len(known)} of {len(questions)} questions were answered: index more with `answer index`")
    free = [(await bench.bare([question], free=True))[0] for question in known[:: max(1, len(known) // 4)]]
    figures = Figures()
    for turn in range(rounds):
        groups = [[question] for question in known]
        eight = [known[(turn + at) % len(known)] for at in range(TOGETHER)]
        for number, group in enumerate([*groups, eight]):
            await _pair(bench, group, figures, engine_first=(turn + number) % 2 == 0)
            steps.every(f"round {turn + 1} of {rounds}, {min(number + 1, len(groups))} of {len(groups)} questions")
        # The eight once more, the other way around: there are fewer of these pairs.
        await _pair(bench, eight, figures, engine_first=(turn + len(groups)) % 2 == 1)
        steps.say(f"round {turn + 1} of {rounds} is done")
    if not figures.first:
        raise ValueError("no reply was the same both times: there is nothing to compare")
    return {
        "bars": figures.bars(),
        "medians": figures.seconds(),
        "free_decoding_tokens_per_s": round(median(one.tokens / one.whole_s for one in free), 1),
        "questions": len(known),
        "rounds": rounds,
        "replies_that_differed": figures.other_texts,
    }


async def _pair(bench: Bench, group: list[str], figures: Figures, *, engine_first: bool) -> None:
    bare = None if engine_first else await bench.bare(group)
    made = await bench.answered(group)
    judging_s = bench.meter.cpu_s
    bare = bare or await bench.bare(group)
    answered = [one for one in made if one is not None]
    if len(answered) == len(group):
        figures.add(answered, bare, judging_s)
    else:
        figures.other_texts += 1


class _Verifier:
    """The deployment's own verifier, called without a handle's task around it: what it computes is metered."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        found: list[Verdict] = await self._handle.verify.remote(list(pairs), timeout_s=deadline.remaining())
        return found


@asynccontextmanager
async def started(settings: Settings, steps: Steps, *, cached_prompts: bool) -> AsyncGenerator[Bench, None]:
    index = HybridIndex.open(settings.index_path, embedder_name(settings))
    async with LocalProduct(settings, ("embedder", "reranker", "verifier"), steps) as product:
        steps.say("starting vLLM")
        synthesizer = await VllmSynthesizer.start(replace(options_of(settings), enable_prefix_caching=cached_prompts))
        try:
            yield _bench(settings, product, index, synthesizer)
        finally:
            synthesizer.close()


def _bench(settings: Settings, product: LocalProduct, index: HybridIndex, synthesizer: VllmSynthesizer) -> Bench:
    async def embed(texts: Sequence[str]) -> Any:
        return await product.handles["embedder"].embed.remote(list(texts), timeout_s=TIMEOUT_S, query=True)

    meter, counter = Meter(), counter_of(settings)
    starter = Starter(synthesizer, meter)
    retriever = IndexRetriever(lambda: index, embed, words=settings.retrieval.lexical, vectors=settings.retrieval.dense)
    parts = Parts(
        classifier=RuleClassifier(),
        retriever=retriever,
        reranker=RemoteReranker(product.handles["reranker"]),
        synthesizer=starter,
        verifier=MeteredVerifier(_Verifier(product.handles["verifier"]), meter),
        relevance=MeteredRelevance(RareWordRelevance(retriever.frequencies), meter),
        counter=counter,
    )
    engine = Engine(
        parts,
        settings.answer,
        Versions(settings=settings.version),
        clock=time.monotonic,
        now=lambda: datetime.now(UTC),
        nonce=lambda: "c0ffee42",  # the same prompt every time
        control_tokens=(*CONTROL_TOKENS, *counter.control_tokens),
    )
    return Bench(engine, starter, synthesizer, meter)


async def run(chosen: argparse.Namespace, settings: Settings, steps: Steps) -> dict[str, object]:
    questions = QUESTIONS[:4] if chosen.quick else QUESTIONS
    async with started(settings, steps, cached_prompts=chosen.cached_prompts) as bench:
        return await measured(bench, questions, 1 if chosen.quick else chosen.rounds, steps)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--quick", action="store_true", help="four questions, one round")
    options.add_argument("--cached-prompts", action="store_true", help="both find their prompt in vLLM's prefix cache")
    options.add_argument("--set", action="append", metavar="KEY=VALUE", help="a setting other than the embedded one")
    options.add_argument("--json", action="store_true", help="print the JSON line alone")
    chosen = options.parse_args()
    steps = Steps()
    try:
        with tempfile.TemporaryDirectory(prefix="answer-bench-") as folder:
            settings = indexed(effective(None, chosen.set).settings, Path(folder), steps)
            found = asyncio.run(run(chosen, settings, steps))
    except (AnswerError, SettingsError, ValueError) as error:
        print(f"could not run: {error}", file=sys.stderr)
        print(json.dumps({"bars": []}))
        return 2
    bars: list[dict[str, object]] = found["bars"]  # type: ignore[assignment]
    if not chosen.json:
        for bar in bars:
            print(f"{bar['name']:80} {bar['value']:6}   {'ok' if bar['ok'] else 'short of ' + str(bar['target'])}")
    print(json.dumps(found))
    return 0 if all(bar["ok"] for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
