"""A run of ``answer calibrate``: questions read and scored, as far as Ctrl-C lets them, and the figures of those."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from serving.cli import scoring
from serving.cli.console import Steps, one_line
from serving.cli.floor_report import FloorReport
from serving.cli.scoring import Case, Failure, Scorer
from serving.evaluation.published import LOST_BY_A_STRICT_FLOOR
from serving.evaluation.rows import AnswerabilityRow
from serving.evaluation.score_floors import calibrate
from serving.evaluation.suites import Suite, read_answerability
from serving.settings import Settings

BAD_ROWS_SHOWN = 20
DONE, BROKEN, INTERRUPTED = 0, 1, 130


class Tally:
    """What is known so far, and how fast it comes."""

    def __init__(self, total: int, steps: Steps) -> None:
        self.cases: list[Case] = []
        self.failed: list[Failure] = []
        self._total = total
        self._steps = steps
        self._began = time.monotonic()

    def add(self, result: Case | Failure) -> None:
        if isinstance(result, Failure):
            self.failed.append(result)
            self._steps.say(f"left out: question {one_line(result.id)}: {result.message}")
        else:
            self.cases.append(result)
        done = len(self.cases) + len(self.failed)
        rate = done / max(1e-9, time.monotonic() - self._began)
        left = (self._total - done) / rate
        self._steps.every(f"scored {done} of {self._total} questions ({rate:.1f}/s, {left:.0f} s left)")


def run(
    path: Path, settings: Settings, steps: Steps, *, own: bool, lose: float, limit: int | None, seed: int
) -> tuple[FloorReport, int]:
    """The report, and the command's exit status: above 0 when it is of a part of the questions alone.

    Raises ``AnswerError`` where questions, index or weights are missing, ``ValueError`` where nothing can be said of
    the questions, and ``KeyboardInterrupt`` before the first of them is scored.
    """
    suite = read_answerability(path)
    _report_bad(suite, steps)
    rng = np.random.default_rng(seed)
    rows = _drawn(suite.rows, limit, rng)
    passages = scoring.own_passages(suite.rows) if own else None
    if passages == []:
        raise ValueError(f"{path} has no passages of its own; leave --passages out to search the index")
    with scoring.opened(settings, passages, steps) as scorer:
        steps.say(f"scoring {len(rows)} questions over {scorer.passages} passages; Ctrl-C ends it early")
        tally = Tally(len(rows), steps)
        status = _score(scorer, rows, settings, tally, steps)
    report = _report(suite, settings, scorer, tally, lose=lose, seed=seed, rng=rng, chosen=len(rows), status=status)
    return report, status


def _score(scorer: Scorer, rows: Sequence[AnswerabilityRow], settings: Settings, tally: Tally, steps: Steps) -> int:
    """Scores one question after the other. Gives the exit status."""
    try:
        going = asyncio.run(scoring.score_all(scorer, rows, settings.answer, clock=time.monotonic, tell=tally.add))
    except KeyboardInterrupt:
        steps.say(f"interrupted: {len(tally.cases)} of {len(rows)} questions are scored")
        return INTERRUPTED
    if not going:
        steps.say(f"stopped after {scoring.PATIENCE} failures in a row; `answer doctor` may tell why")
    return DONE if going else BROKEN


def _report(
    suite: Suite[AnswerabilityRow],
    settings: Settings,
    scorer: Scorer,
    tally: Tally,
    *,
    lose: float,
    seed: int,
    rng: np.random.Generator,
    chosen: int,
    status: int,
) -> FloorReport:
    known = [(case.answerable, case.score) for case in tally.cases if case.score is not None]
    found = calibrate(
        [score for answerable, score in known if answerable],
        [score for answerable, score in known if not answerable],
        current=settings.answer.score_floor,
        lose=lose,
        rng=rng,
    )
    return FloorReport(
        file=suite.path.name,
        rows=len(suite.rows),
        chosen=chosen,
        seed=seed,
        complete=status == DONE,
        bad_rows=tuple(str(bad) for bad in suite.bad),
        failed=tuple(tally.failed),
        nothing_found=len(tally.cases) - len(known),
        index=scorer.index,
        passages=scorer.passages,
        candidates=settings.answer.candidates,
        reranker=scorer.name,
        settings=settings.version,
        calibration=found,
        set=f"answer.score_floor={found.proposal.setting:g}",
        published_lost_percent=LOST_BY_A_STRICT_FLOOR,
        cases=tuple(tally.cases),
    )


def _drawn(rows: Sequence[AnswerabilityRow], limit: int | None, rng: np.random.Generator) -> list[AnswerabilityRow]:
    """So many rows at random, in the file's order; all of them without a limit."""
    if limit is None or limit >= len(rows):
        return list(rows)
    return [rows[place] for place in sorted(rng.choice(len(rows), limit, replace=False))]


def _report_bad(suite: Suite[AnswerabilityRow], steps: Steps) -> None:
    for bad in suite.bad[:BAD_ROWS_SHOWN]:
        steps.say(f"left out: {one_line(str(bad))}")
    if len(suite.bad) > BAD_ROWS_SHOWN:
        steps.say(f"left out: {len(suite.bad) - BAD_ROWS_SHOWN} more bad rows; --json names each")
