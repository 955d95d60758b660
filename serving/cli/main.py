"""The ``answer`` command: ``up``, ``ask``, ``index``, ``search``, ``calibrate``, ``config``, ``doctor``, ``errors``,
``prompt``, ``gaps``, ``weights``, ``eval``, ``finetune``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from rich.console import Console

from serving.answer.errors import AnswerError
from serving.cli import config as config_commands
from serving.cli.calibrating import calibrate
from serving.cli.client import DEFAULT_URL, ServerError
from serving.cli.console import fail, stdout_for_result, write_all
from serving.cli.doctor.command import doctor
from serving.cli.errors import errors
from serving.cli.evaluating.command import evaluate
from serving.cli.finetuning import finetune
from serving.cli.gaps import gaps
from serving.cli.help import epilog
from serving.cli.index import index
from serving.cli.options import Config, Sets, Url, chosen
from serving.cli.weights import weights

RUN, TEXT, LOOK, TRAIN = "Run it", "What it answers from", "See what is wrong", "Train what it answers with"

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Answers in which every sentence is entailed by a passage it cites, or an honest decline.",
    epilog=epilog(
        ("answer up", "start the server here; Ctrl-C stops it"),
        ('answer ask "What does itertools.chain do?"', "ask it, from another terminal"),
        ("answer doctor", "when something does not work: what is wrong, and what mends it"),
        after="`answer COMMAND --help` has examples of each. `answer --install-completion` teaches your shell.",
    ),
)


def _say_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        said = version("openindex-answer")
    except PackageNotFoundError:
        said = "(not installed: run from a folder of source)"
    sys.stdout.write(f"answer {said}\n")
    raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def _http_options(document: Mapping[str, Any], host: str | None, port: int | None) -> dict[str, Any]:
    """Serve's HTTP options: the file's, then what the command line says instead."""
    options = document.get("http_options") or {}
    if not isinstance(options, dict):
        fail("http_options must hold keys such as host and port", code=2)
    http = {"host": "127.0.0.1", "port": 8000, **options}
    http.update({key: value for key, value in (("host", host), ("port", port)) if value is not None})
    if not isinstance(http["host"], str) or not isinstance(http["port"], int):
        fail("http_options: host must be text and port a number, such as 127.0.0.1 and 8000", code=2)
    return http


@app.command(
    rich_help_panel=RUN,
    epilog=epilog(
        ("answer up", "the embedded target at http://127.0.0.1:8000"),
        ("answer up --port 8080 --set answer.max_sentences=3", "elsewhere, with one setting changed"),
        ('answer up --ask "What does itertools.chain do?"', "start, answer one question as JSON, stop"),
        after="Next: `answer ask QUESTION` in another terminal. It does not start? `answer doctor`.",
    ),
)
def up(
    *,
    config: Config = None,
    sets: Sets = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Address to listen on.", show_default="the file's, or 127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65535, help="Port to listen on.", show_default="the file's, or 8000"),
    ] = None,
    ask: Annotated[
        str | None, typer.Option(metavar="QUESTION", help="Start, ask this, print the answer's JSON, stop.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what Ray and vLLM log.")] = False,
) -> None:
    """Start everything in the foreground: models, index, Ray Serve. Ctrl-C stops it."""
    from serving.cli.up import run

    found = chosen(config, sets)
    http = _http_options(found.document, host, port)
    with stdout_for_result() as result:
        try:
            answer = run(found.settings, http, config=config, sets=sets or (), question=ask, verbose=verbose)
        except (AnswerError, ServerError) as error:
            fail(str(error))
        if answer is not None:
            write_all(result, answer.model_dump_json(indent=2) + "\n")
    if ask is not None and answer is None:
        raise typer.Exit(130)


@app.command(
    rich_help_panel=RUN,
    epilog=epilog(
        ('answer ask "What does itertools.chain do?"', "the answer with its sources"),
        ('answer ask "What is a deque?" --json | jq .claims', "the whole Answer, for scripts"),
        ('answer ask "What is a deque?" --url http://10.0.0.5:8000', "ask a server elsewhere"),
        after="Next: `answer search WORDS` shows what the index holds. No answer? `answer doctor --url URL`.",
    ),
)
def ask(
    question: Annotated[str, typer.Argument(help="A question in natural language.")],
    url: Url = DEFAULT_URL,
    json: Annotated[bool, typer.Option("--json", help="Print the Answer as JSON, once it is whole.")] = False,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Show each sentence once it is proven, or all at the end.  [default: --stream on a terminal]",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Deadline in seconds.")] = 60.0,
) -> None:
    """Ask a running server. Ctrl-C hangs up, and the server stops working on the question."""
    from serving.cli import client
    from serving.cli.live import show
    from serving.cli.rendering import render

    out = Console(highlight=False)
    try:
        if json:
            sys.stdout.write(client.ask(url, question, timeout).model_dump_json(indent=2) + "\n")
        elif out.is_terminal if stream is None else stream:
            with closing(client.stream(url, question, timeout)) as events:
                show(events, out, Console(highlight=False, stderr=True))
        else:
            render(client.ask(url, question, timeout), out)
    except ServerError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


app.command(
    rich_help_panel=TEXT,
    epilog=epilog(
        ("answer index docs/ README.md", "your own text; what it held before stays"),
        ("answer index ~/project 'notes/**/*.md' dump.jsonl.gz", "a git repository, a pattern, JSON Lines"),
        ("answer index --remove docs/old.md", "take something out; --list shows what there is"),
        after="Next: `answer search WORDS` to see what is found, `answer up` to ask.",
    ),
)(index)


@app.command(
    rich_help_panel=TEXT,
    epilog=epilog(
        ('answer search "iterate pairwise"', "the ten best passages by BM25"),
        ('answer search "retry backoff" --limit 3 --json', "three of them, as JSON lines"),
        after="Next: `answer ask QUESTION`. Nothing found? `answer index PATH` adds text.",
    ),
)
def search(
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="Passages to show.")] = 10,
    config: Config = None,
    sets: Sets = None,
    json: Annotated[bool, typer.Option("--json", help="Print the passages as JSON lines.")] = False,
) -> None:
    """Search the index on this machine (BM25). No server and no model is needed."""
    from serving.answer.wire import PassageOut
    from serving.cli.rendering import print_passage
    from serving.retrieval.index import HybridIndex

    settings = chosen(config, sets).settings
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


app.command(
    rich_help_panel=LOOK,
    epilog=epilog(
        ("answer doctor", "this machine, for the default target"),
        ("answer doctor --url http://127.0.0.1:8000", "and the server that runs there"),
        ("answer doctor --config mine.yaml --json | jq .checks", "for scripts"),
        after="Next: do what the arrows say, then `answer up`. `answer config check` says more of settings.",
    ),
)(doctor)
app.command(
    rich_help_panel=TEXT,
    epilog=epilog(
        ("answer calibrate questions.jsonl --png floors.png", "over the index on this machine"),
        ("answer calibrate qa.jsonl.gz --passages --limit 200", "over the passages of the rows"),
        ("answer calibrate questions.jsonl --json | jq -r .set", "for scripts"),
        after="Next: `answer up --set answer.score_floor=VALUE`.",
    ),
)(calibrate)
app.add_typer(config_commands.app, name="config", rich_help_panel=LOOK)
app.add_typer(gaps, name="gaps", rich_help_panel=TEXT)
app.add_typer(weights, name="weights", rich_help_panel=RUN)
app.command(
    rich_help_panel=LOOK,
    epilog=epilog(
        ("answer errors", "every code, its status, what it means and what to do"),
        ("answer errors overloaded", "one of them"),
        after="Next: `answer doctor --url URL` for the server that gave it.",
    ),
)(errors)


@app.command(
    "prompt",
    rich_help_panel=LOOK,
    epilog=epilog(
        ("answer prompt", "what the model is told, as a conversation"),
        ("answer prompt --json | jq -r .version", "the hash that answers carry"),
        after="Next: `answer config show` for the rest of what shapes answers.",
    ),
)
def show_prompt(
    config: Config = None,
    sets: Sets = None,
    json: Annotated[bool, typer.Option("--json", help="Print the prompt as JSON.")] = False,
) -> None:
    """Print what the model is told, and the hash that answers carry for it."""
    from serving.cli.prompting import show

    show(chosen(config, sets).settings.answer.grammar, as_json=json)


app.command(
    "eval",
    rich_help_panel=LOOK,
    epilog=epilog(
        ("answer eval smoke", "the small suite that CI holds to its floors"),
        ("answer eval qa --file questions.jsonl --limit 60", "your own questions, as many of each label"),
        ("answer eval grounding --file pairs.jsonl --against old", "one stage, against an earlier report"),
        after="Next: open the report.html that it names.",
    ),
)(evaluate)
app.command(
    rich_help_panel=TRAIN,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog=epilog(
        ("answer finetune citation --config citation.yaml --check-data", "what it would learn from"),
        ("answer finetune citation --config citation.yaml --data kit/", "train, or go on training"),
        ("answer finetune citation --config c.yaml --submit auto", "on the Ray cluster of this machine"),
        after="Next: the run's folder holds weights and metrics.jsonl. configs/finetune has a file for each job.",
    ),
)(finetune)

if __name__ == "__main__":
    app(prog_name="answer")
