"""The ``answer`` command: ``up``, ``ask``, ``index``, ``search``, ``eval``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from serving.answer.errors import AnswerError
from serving.cli.client import DEFAULT_URL, ServerError
from serving.cli.console import Steps, fail, stdout_for_result, write_all
from serving.cli.evaluating.command import evaluate
from serving.settings import Settings, SettingsError, load

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Answers in which every sentence is entailed by a passage it cites, or an honest decline.",
)

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="A Serve file such as configs/embedded.yaml.", show_default=False)
]
Url = Annotated[str, typer.Option(envvar="ANSWER_URL", help="The server to ask.")]


# The embedded target is what runs when no file is named. It lies beside the packages in a checkout.
EMBEDDED = Path(__file__).parents[2] / "configs" / "embedded.yaml"


def _settings(config: Path | None) -> tuple[Settings, dict[str, Any]]:
    if config is None and EMBEDDED.is_file():
        config = EMBEDDED
    try:
        return load(config) if config else (Settings(), {})
    except SettingsError as error:
        fail(str(error), code=2)


def _http_options(document: dict[str, Any], host: str | None, port: int | None) -> dict[str, Any]:
    """Serve's HTTP options: the file's, then what the command line says instead."""
    options = document.get("http_options") or {}
    if not isinstance(options, dict):
        fail("http_options must hold keys such as host and port", code=2)
    http = {"host": "127.0.0.1", "port": 8000, **options}
    http.update({key: value for key, value in (("host", host), ("port", port)) if value is not None})
    if not isinstance(http["host"], str) or not isinstance(http["port"], int):
        fail("http_options: host must be text and port a number, such as 127.0.0.1 and 8000", code=2)
    return http


@app.command()
def up(
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port to listen on.  [default: 8000]")] = None,
    ask: Annotated[
        str | None, typer.Option(metavar="QUESTION", help="Start, ask this, print the answer's JSON, stop.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what Ray and vLLM log.")] = False,
) -> None:
    """Start everything in the foreground: models, index, Ray Serve. Ctrl-C stops it."""
    from serving.cli.up import run

    settings, document = _settings(config)
    http = _http_options(document, host, port)
    with stdout_for_result() as result:
        try:
            answer = run(settings, http, config=config, question=ask, verbose=verbose)
        except (AnswerError, ServerError) as error:
            fail(str(error))
        if answer is not None:
            write_all(result, answer.model_dump_json(indent=2) + "\n")
    if ask is not None and answer is None:
        raise typer.Exit(130)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="A question in natural language.")],
    url: Url = DEFAULT_URL,
    json: Annotated[bool, typer.Option("--json", help="Print the Answer as JSON.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Deadline in seconds.")] = 60.0,
) -> None:
    """Ask a running server."""
    from serving.cli.client import ask as ask_server
    from serving.cli.rendering import render

    try:
        answer = ask_server(url, question, timeout)
    except ServerError as error:
        fail(str(error))
    if json:
        sys.stdout.write(answer.model_dump_json(indent=2) + "\n")
    else:
        render(answer, Console(highlight=False))


@app.command()
def index(
    paths: Annotated[list[Path] | None, typer.Argument(help="Markdown and text files, or folders of them.")] = None,
    installed: Annotated[
        bool, typer.Option("--installed", help="The READMEs of installed packages and the standard library.")
    ] = False,
    config: Config = None,
) -> None:
    """Build the index that answers, from files or from what is installed. It takes the place of the one before."""
    from serving.cli.indexing import index_installed, index_paths

    if bool(paths) == installed:
        fail("name files or folders to index, or --installed", code=2)
    settings, _ = _settings(config)
    steps = Steps()
    try:
        if paths:
            index_paths(paths, settings, steps)
        else:
            index_installed(settings, steps)
    except (AnswerError, OSError, ValueError) as error:
        fail(str(error))


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="Passages to show.")] = 10,
    config: Config = None,
    json: Annotated[bool, typer.Option("--json", help="Print the passages as JSON lines.")] = False,
) -> None:
    """Search the index on this machine (BM25). No server and no model is needed."""
    from serving.answer.wire import PassageOut
    from serving.cli.rendering import print_passage
    from serving.retrieval.index import HybridIndex

    settings, _ = _settings(config)
    try:
        found = [PassageOut.of(p) for p in HybridIndex.open(settings.index_path).lexical(query, limit)]
    except AnswerError as error:
        fail(str(error))
    console = Console(highlight=False)
    for number, passage in enumerate(found, start=1):
        if json:
            sys.stdout.write(passage.model_dump_json() + "\n")
        else:
            print_passage(console, number, passage, excerpt=True)
    if not found:
        fail("nothing found")


app.command("eval")(evaluate)

if __name__ == "__main__":
    app(prog_name="answer")
