"""``answer index``: its options, and which of its works each asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serving.answer.errors import AnswerError
from serving.cli.console import Steps, fail
from serving.cli.options import Config, Sets, chosen
from serving.retrieval.sources.options import Dates, Format, Options

READING, KEEPING = "How text is read", "What is indexed"


def index(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT]...",
            help="Files, folders, quoted patterns such as 'docs/**/*.md', git repositories, or - for standard input. "
            "Read are Markdown, HTML, text, reStructuredText and JSON Lines.",
        ),
    ] = None,
    *,
    installed: Annotated[
        bool,
        typer.Option(
            "--installed",
            help="The READMEs of installed packages and the standard library.",
            rich_help_panel=KEEPING,
        ),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Start afresh: forget everything indexed before.", rich_help_panel=KEEPING),
    ] = False,
    embed: Annotated[
        bool,
        typer.Option("--embed", help="Finish the embeddings that an earlier run left.", rich_help_panel=KEEPING),
    ] = False,
    remove: Annotated[
        list[str] | None,
        typer.Option(help="Remove a document, source, file or folder; may be repeated.", rich_help_panel=KEEPING),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the documents that are indexed.", rich_help_panel=KEEPING)
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="With --list: one JSON object a line.", rich_help_panel=KEEPING)
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Check every file, passage and vector; exit 1 if not whole.",
            rich_help_panel=KEEPING,
        ),
    ] = False,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="What standard input and files named one by one hold, whatever their names say.",
            rich_help_panel=READING,
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(help="What standard input is called: its source, title and format.", rich_help_panel=READING),
    ] = "stdin",
    dates: Annotated[
        Dates | None,
        typer.Option(
            help="Dates of passages: what documents say of themselves, also the file's time, or none.",
            rich_help_panel=READING,
        ),
    ] = None,
    git: Annotated[
        bool | None,
        typer.Option(
            "--git/--no-git",
            help="Read the committed files of the repository, or the files as they are.",
            show_default="--git for the top folder of a repository",
            rich_help_panel=READING,
        ),
    ] = None,
    rev: Annotated[
        str | None,
        typer.Option(help="The commit, branch or tag to read from git.", show_default="HEAD", rich_help_panel=READING),
    ] = None,
    max_file_mb: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Pass over larger files. JSON Lines have no limit.",
            show_default="5",
            rich_help_panel=READING,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write a JSON line for each file that is passed over, with the reason.", rich_help_panel=READING
        ),
    ] = None,
    config: Config = None,
    sets: Sets = None,
) -> None:
    """Index text: add what is new, update what changed, drop what has gone from the folders named; the rest stays.

    BM25 answers at once and embeddings follow. A running server takes the new index up by itself.
    """
    from serving.cli import indexing, managing

    if sum([bool(inputs), installed, embed, bool(remove), list_, verify]) != 1:
        fail("name files or folders to index, or one of --installed, --embed, --remove, --list, --verify", code=2)
    settings = chosen(config, sets).settings
    given = settings.sources
    options = Options(
        format=form,
        name=name,
        dates=dates or Dates(given.dates),
        max_bytes=int((max_file_mb or given.max_file_mb) * 1_000_000),
        git=given.git if git is None else git,
        rev=rev,
    )
    steps = Steps()
    try:
        if inputs:
            indexing.index_sources(inputs, options, settings, steps, report, afresh=replace)
        elif installed:
            indexing.index_installed(settings, steps, replace=replace)
        else:
            managing.run(settings, steps, remove=remove, embed=embed, verify=verify, json=json)
    except (AnswerError, OSError, ValueError) as error:
        fail(str(error))
