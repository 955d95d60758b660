"""One run of one suite: rows chosen, each run and written down, graded, scored, reported."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from models.catalog import Catalog, fingerprint
from serving.answer import prompt
from serving.answer.wire import Versions
from serving.cli.console import Steps
from serving.cli.evaluating import ablations, doing, reporting
from serving.cli.evaluating.ablations import Part
from serving.cli.evaluating.cache import OutputCache
from serving.cli.evaluating.errors import EvaluationError
from serving.cli.evaluating.grading import choose_grader, judge
from serving.cli.evaluating.journal import Journal
from serving.cli.evaluating.local import STAGES, LocalProduct
from serving.cli.evaluating.locating import Chosen, choose
from serving.cli.evaluating.running import run_cases
from serving.cli.evaluating.stage import STAGE_RECORDS, Stage, measure
from serving.evaluation import answering
from serving.evaluation.findings import Findings
from serving.evaluation.memory import Vocabulary
from serving.evaluation.records import Asked, Record
from serving.evaluation.report import Grader
from serving.evaluation.rows import Format
from serving.settings import Settings

QUESTIONS = (Format.QA, Format.ASQA)
RECORDS: dict[Format, type[Record]] = {**dict.fromkeys(QUESTIONS, Asked), **STAGE_RECORDS}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says. ``url`` asks a deployment; without it the product runs in this process."""

    suite: str
    command: str
    file: Path | None = None
    url: str | None = None
    limit: int | None = None
    seed: int = 0
    concurrency: int = 2
    out: Path | None = None
    fresh: bool = False
    grader: str | None = None
    grader_threshold: float = 0.5
    kin: bool = False
    against: Path | None = None
    without: tuple[Part, ...] = ()
    timeout_s: float = 120.0


def run(settings: Settings, options: Options, steps: Steps, console: Console) -> Path:
    """Runs the suite and returns the folder of its report. Raises an ``AnswerError`` that names what to do."""
    chosen = choose(options.suite, file=options.file, limit=options.limit, seed=options.seed)
    facts = chosen.facts
    _check(options, facts.format)
    steps.say(f"{facts.name}: {len(chosen.rows)} of {len(chosen.every)} rows, {len(facts.bad)} bad")
    for line in facts.bad[:5]:
        steps.say(f"left out: {line}")
    earlier = reporting.read_earlier(options.against)
    grader, weights = (
        choose_grader(settings, options.grader, threshold=options.grader_threshold, kin=options.kin)
        if facts.format in QUESTIONS
        else (None, None)
    )
    without = [part.value for part in options.without]
    out = options.out or Path("evaluation") / "-".join([facts.name, *(f"without-{part}" for part in without)])
    identity = {
        "suite": facts.sha256,
        "format": facts.format.value,
        "product": options.url or f"{settings.version} {prompt.version()} {_weights(settings, facts.format)}",
        "code": "" if options.url else _code(),
        "without": without,
    }
    journal = Journal[Any](out / "cases.jsonl", RECORDS[facts.format], identity, fresh=options.fresh)
    with closing(journal), closing(OutputCache(settings.home / "evaluation.sqlite")) as cache:
        going = _Run(settings, options, chosen, journal, cache, steps)
        findings, versions = asyncio.run(going.score(grader, weights))
    made = reporting.assemble(findings, facts, grader, versions, command=options.command, seed=options.seed)
    changed = reporting.write(made, findings.worst_by, earlier, out)
    reporting.show(made, changed, console)
    steps.say(f"report: {out / 'report.html'}")
    return out


def _check(options: Options, kind: Format) -> None:
    if options.url and kind not in QUESTIONS:
        raise EvaluationError(f"a server is asked whole questions: --url goes with qa and asqa suites, not with {kind}")
    if options.url and options.without:
        raise EvaluationError("a part can be switched off in this process alone: leave out --url or --without")
    if options.grader and kind not in QUESTIONS:
        raise EvaluationError(f"a {kind} suite has labels and needs no grader: leave out --grader")


def _weights(settings: Settings, kind: Format) -> str:
    """The weights that a kind of suite runs on: new ones at the same place are another run."""
    models = settings.models
    used = {
        "embedder": models.embedder.model,
        "reranker": models.reranker.model,
        "verifier": models.verifier.model,
        "synthesizer": models.synthesizer.model,
        "adapter": models.synthesizer.adapter,
        "classifier": models.classifier.model if models.classifier.kind == "ngram" else None,
    }
    stages = {*STAGES["qa"], "adapter", "classifier"} if kind in QUESTIONS else {*STAGES[kind.value]}
    stages |= {"classifier"} if kind is Format.ROUTE else set()
    catalog = Catalog(settings.home)
    return " ".join(fingerprint(catalog.locate(name)) for stage, name in used.items() if name and stage in stages)


def _code() -> str:
    """A hash of the code that decides: what was measured with other code is another run."""
    root = Path(prompt.__file__).parent
    sources = sorted(root.rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class _Run:
    settings: Settings
    options: Options
    chosen: Chosen
    journal: Journal[Any]
    cache: OutputCache
    steps: Steps

    async def score(self, grader: Grader | None, weights: Path | None) -> tuple[Findings, Versions]:
        rows, options = self.chosen.rows, self.options
        if self.chosen.facts.format not in QUESTIONS:
            stage = Stage(self.settings, self.chosen.facts.format, self.steps, options.concurrency, options.seed)
            with ablations.without(options.without):
                return await measure(stage, rows, self.journal)
        versions = await self._ask()
        asked = self.journal.cases
        answers = [record.answer for row in rows if (record := asked.get(row.id)) and record.answer]
        table = None
        if grader is not None and weights is not None:
            pairs = (pair for answer in answers for pair in answering.pairs(answer))
            threads = self.settings.models.verifier.threads
            table = await judge(pairs, grader, weights, cache=self.cache, steps=self.steps, threads=threads)
        found = answering.score(rows, asked, table, np.random.default_rng(options.seed))
        return found, answers[0].versions if answers else versions

    async def _ask(self) -> Versions:
        """Asks every question that was not answered before, in this process or over HTTP."""
        settings, options = self.settings, self.options
        if options.url:
            self.steps.say(f"{options.url} answers from its own index, not from the rows' passages")
            await self._each(doing.ServerAsker(options.url, options.timeout_s))
            return Versions()
        if all(row.id in self.journal.finished for row in self.chosen.rows):
            self.steps.say("every question was asked before")
            return Versions(settings=settings.version)
        suite = f"{self.chosen.facts.name}@{self.chosen.facts.sha256[:12]}"
        async with LocalProduct(settings, STAGES["qa"], self.steps) as product:
            engine = await doing.LocalEngine.over(product, self.cache)
            asker = doing.RowAsker(engine, Vocabulary.of(self.chosen.every), suite=suite, timeout_s=options.timeout_s)
            with ablations.without(options.without):
                await self._each(asker)
            return engine.versions

    async def _each(self, ask: Callable[[Any], Awaitable[Asked]]) -> None:
        width = self.options.concurrency
        await run_cases(
            self.chosen.rows, ask, Asked, self.journal, concurrency=width, steps=self.steps, what="questions"
        )
