"""``answer eval``: how good the product is, on a suite, on its own smoke suite, or on a log of its answers."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from serving.answer.errors import AnswerError
from serving.cli.console import Steps, fail
from serving.cli.evaluating.ablations import Part
from serving.cli.options import Config, Sets, chosen

SMOKE = "smoke"


def evaluate(
    suite: Annotated[
        str | None,
        typer.Argument(
            help="qa, grounding, rerank, route or asqa; a suite's path; a name under ANSWER_EVAL_DATA; or smoke.",
            show_default=False,
        ),
    ] = None,
    *,
    file: Annotated[Path | None, typer.Option(help="The suite's file, where SUITE is its kind.")] = None,
    url: Annotated[str | None, typer.Option(help="Ask this deployment, over its own index, instead.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows to run, as many of each label as there are.")] = None,
    seed: Annotated[int, typer.Option(help="Chooses the rows, and the bootstrap's samples.")] = 0,
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Cases at once.")] = 2,
    timeout: Annotated[float, typer.Option(min=1, max=600, help="Deadline of a question, in seconds.")] = 120.0,
    out: Annotated[Path | None, typer.Option(help="Folder of the report.  [default: evaluation/NAME]")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the cases that an earlier run finished.")] = False,
    grader: Annotated[str | None, typer.Option(help="An entailment model that grades: path:… or hub:….")] = None,
    grader_threshold: Annotated[float, typer.Option(min=0.01, max=0.99, help="What it must score to entail.")] = 0.5,
    kin: Annotated[bool, typer.Option("--kin", help="The grader may be of the gate model's kin.")] = False,
    against: Annotated[Path | None, typer.Option(help="An earlier report to compare with.")] = None,
    without: Annotated[list[Part] | None, typer.Option(help="Switch a part off, in process.")] = None,
    log: Annotated[Path | None, typer.Option(help="Score this log of answers (a file, or a folder of them).")] = None,
    floors: Annotated[Path | None, typer.Option(help="smoke: the floors to hold.")] = None,
    raise_floors: Annotated[
        bool, typer.Option("--raise-floors", help="smoke: set floors to what is measured.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
) -> None:
    """Measure the product: `answer eval qa --limit 60`, `answer eval smoke`, `answer eval --log FILE`."""
    if (suite is None) == (log is None):
        fail("name a suite such as qa, or a log with --log", code=2)
    if suite != SMOKE and (floors or raise_floors):
        fail("--floors and --raise-floors go with `answer eval smoke`", code=2)
    settings, steps = chosen(config, sets).settings, Steps()
    from rich.console import Console

    from serving.cli.evaluating.logs import score_log
    from serving.cli.evaluating.smoke import run_smoke
    from serving.cli.evaluating.suite import Options, run

    console = Console(highlight=False)
    options = Options(
        suite=suite or "",
        command=shlex.join(["answer", *sys.argv[1:]]),
        file=file,
        url=url,
        limit=limit,
        seed=seed,
        concurrency=concurrency,
        out=out,
        fresh=fresh,
        grader=grader,
        grader_threshold=grader_threshold,
        kin=kin,
        against=against,
        without=tuple(dict.fromkeys(without or ())),
        timeout_s=timeout,
    )
    try:
        if log is not None:
            score_log(log, settings, options, steps, console)
        elif suite == SMOKE:
            held = run_smoke(settings, url, steps, console, floors=floors, raise_floors=raise_floors)
            if not held:
                fail("a figure fell through its floor; the table says which")
        else:
            run(settings, options, steps, console)
    except AnswerError as error:
        fail(str(error), code=2 if error.status == 422 else 1)  # 422: what was asked for is wrong
    except KeyboardInterrupt:
        sys.stderr.write("answer: stopped; finished cases are kept, and the same command goes on\n")
        raise typer.Exit(130) from None
