"""``answer calibrate``: a score floor from questions of which it is known whether they can be answered."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from serving.answer.errors import AnswerError
from serving.cli.console import Steps, fail
from serving.cli.options import Config, Sets, chosen

INTERRUPTED = 130


def calibrate(
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS",
            help='JSON Lines, gzip or not: {"question": ..., "answerable": true or false} a line, or a suite in the '
            "format qa.",
        ),
    ],
    *,
    passages: Annotated[
        bool, typer.Option("--passages", help="Search the passages of the file's own rows, not the index.")
    ] = False,
    lose: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="The share of answerable questions that may be lost.")
    ] = 0.005,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Score so many questions, drawn at random.  [default: all]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For the draw and the intervals.")] = 0,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the plot as an image too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print all of it as one JSON document.")] = False,
    config: Config = None,
    sets: Sets = None,
) -> None:
    """Propose answer.score_floor from questions known to be answerable or not. Nothing is changed."""
    from serving.cli.floor_report import render
    from serving.cli.floor_run import run

    settings = chosen(config, sets).settings
    if png is not None and not png.parent.is_dir():
        fail(f"--png {png}: there is no folder {png.parent}; make it first", code=2)
    steps = Steps()
    try:
        found, status = run(questions, settings, steps, own=passages, lose=lose, limit=limit, seed=seed)
        if png is not None:
            from serving.cli.floor_picture import write_png

            write_png(found.calibration, png)
            steps.say(f"wrote {png}")
    except (AnswerError, OSError, ValueError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted before there was anything to show", code=INTERRUPTED)
    if json:
        sys.stdout.write(found.model_dump_json(indent=2) + "\n")
    else:
        render(found, Console(highlight=False))
    raise typer.Exit(status)
