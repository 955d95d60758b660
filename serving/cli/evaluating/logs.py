"""``answer eval --log``: scores what a deployment wrote down of its answers."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import closing
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from rich.console import Console

from serving.answer.logged import Logged
from serving.answer.wire import Versions
from serving.cli.console import Steps
from serving.cli.evaluating import reporting
from serving.cli.evaluating.cache import OutputCache
from serving.cli.evaluating.errors import EvaluationError
from serving.cli.evaluating.grading import choose_grader, judge
from serving.cli.evaluating.suite import Options
from serving.evaluation import online
from serving.evaluation.judgements import Table
from serving.evaluation.report import SuiteFacts
from serving.evaluation.rows import Format
from serving.settings import Settings


def score_log(log: Path, settings: Settings, options: Options, steps: Steps, console: Console) -> Path:
    """Scores a log and returns the folder of its report."""
    lines, bad, digest = read_log(log)
    steps.say(f"{log}: {len(lines)} answers, {len(bad)} bad lines")
    earlier = reporting.read_earlier(options.against)
    grader, weights = choose_grader(settings, options.grader, threshold=options.grader_threshold, kin=options.kin)
    table: Table | None = None
    texts: dict[str, str] = {}
    if weights is not None:
        texts = _texts(settings, lines, steps)
        with closing(OutputCache(settings.home / "evaluation.sqlite")) as cache:
            pairs = online.pairs(lines, texts)
            table = asyncio.run(
                judge(pairs, grader, weights, cache=cache, steps=steps, threads=settings.models.verifier.threads)
            )
    findings = online.score(lines, texts, table, np.random.default_rng(options.seed))
    name = log.name.removesuffix(".jsonl")
    facts = SuiteFacts(name=name, format=Format.LOG, sha256=digest, rows=len(lines), chosen=len(lines), bad=tuple(bad))
    versions = lines[-1].versions if lines else Versions()
    made = reporting.assemble(findings, facts, grader, versions, command=options.command, seed=options.seed)
    out = options.out or Path("evaluation") / name
    changed = reporting.write(made, findings.worst_by, earlier, out)
    reporting.show(made, changed, console)
    steps.say(f"report: {out / 'report.html'}")
    return out


def read_log(log: Path) -> tuple[list[Logged], list[str], str]:
    """The good lines of a file, or of the files in a folder; the bad ones by place; and a hash of it all."""
    paths = sorted(log.glob("*.jsonl")) if log.is_dir() else [log]
    lines: list[Logged] = []
    bad: list[str] = []
    digest = hashlib.sha256()
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise EvaluationError(f"cannot read {path}: {error.strerror}; give a log's file or folder") from error
        digest.update(data)
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                lines.append(Logged.model_validate_json(line))
            except ValidationError as error:
                bad.append(f"{path}:{number}: {error.errors(include_url=False)[0]['msg']}")
    if not lines:
        raise EvaluationError(f"{log} holds no logged answer; the setting answer_log says where they are written")
    return lines, bad, digest.hexdigest()


def _texts(settings: Settings, lines: list[Logged], steps: Steps) -> dict[str, str]:
    """The passages that the log names, as the index at hand still holds them, by hash; not those that changed."""
    from serving.answer.logged import digest
    from serving.answer.prompt import premise
    from serving.retrieval.index import HybridIndex

    wanted = {passage.sha256 for line in lines for passage in line.passages}
    index = HybridIndex.open(settings.index_path)
    # The index finds by words, not by id: each kept question finds again what it found then.
    found: dict[str, str] = {}
    for question in {line.question for line in lines if line.question}:
        for passage in index.lexical(question, 100):
            if (name := digest(passage.text)) in wanted:
                found[name] = premise(passage)
    steps.say(f"{len(found)} of {len(wanted)} passages are still in the index")
    return found
