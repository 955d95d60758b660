"""``answer weights``: the store of weights on this machine, and rolling them out into a running service."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from models.catalog import Catalog
from models.weights import WeightsStore
from serving.answer.errors import AnswerError
from serving.cli.console import Steps, fail, one_line
from serving.cli.help import epilog
from serving.cli.options import Config, chosen
from serving.deployments.rollout import PLACES, Rollout

TIMEOUT_S = 300.0

weights = typer.Typer(
    no_args_is_help=True,
    help="The weights on this machine, by what is in them; and rolling them out.",
    epilog=epilog(
        ("answer weights add citation runs/citation/weights", "keep what a job trained"),
        ("answer weights use citation 3f9c2a71b0de", "have the running service answer with it"),
        after="`answer weights COMMAND --help` has examples of each.",
    ),
)

Job = Annotated[str, typer.Argument(metavar="JOB", help=f"What they are for: {', '.join(PLACES)}.")]


@weights.command(
    epilog=epilog(
        ("answer weights add citation runs/citation/weights", "the folder that a finetune run wrote"),
        ("answer weights add citation shipped:citation", "those that come with the product"),
        after="Next: `answer weights use JOB HASH`, with the hash that it prints.",
    ),
)
def add(
    job: Job,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of safetensors, or shipped:JOB.")],
    config: Config = None,
) -> None:
    """Copy weights into the store; print the hash that names them from now on."""
    _check(job)
    home, steps = chosen(config, None).settings.home, Steps()
    try:
        found = Catalog(home).locate(folder, progress=steps.say)
        stored = WeightsStore(home).add(job, found, progress=steps.say)
    except AnswerError as error:
        fail(error.message)
    sys.stdout.write(f"{stored.hash}\n")


@weights.command(
    "list",
    epilog=epilog(
        ("answer weights list", "all jobs' weights, newest first"),
        ("answer weights list citation", "one job's"),
        after="Next: `answer weights use JOB HASH`.",
    ),
)
def list_weights(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="One job's alone.", show_default=False)] = None,
    config: Config = None,
) -> None:
    """List what the store holds: job, hash, when it was added, size."""
    store = WeightsStore(chosen(config, None).settings.home)
    found = list(store) if job is None else store.of(job)
    for one in found:
        row = f"{one.job:<12}  {one.hash}  {one.added_at:%Y-%m-%d %H:%M}  {one.size / 2**20:8.1f} MiB"
        sys.stdout.write(f"{row}\n")
    if not found:
        sys.stderr.write("no weights; `answer weights add JOB FOLDER` adds some\n")


@weights.command(
    epilog=epilog(
        ("answer weights use citation 3f9c2a71b0de", "no restart, and no request fails"),
        ("answer weights use citation previous", "back to what was used before"),
        ("answer weights use citation base", "the model without weights of ours"),
        after="Next: `answer ask QUESTION --json | jq .versions` names what answered.",
    ),
)
def use(
    job: Job,
    which: Annotated[str, typer.Argument(metavar="HASH", help="A hash, or previous, shipped or base.")],
    *,
    name: Annotated[str, typer.Option("--app", help="The Serve application.")] = "answer",
    address: Annotated[
        str | None,
        typer.Option(envvar="RAY_ADDRESS", help="The Ray cluster.", show_default="the one on this machine"),
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that the replicas may take.")] = TIMEOUT_S,
    config: Config = None,
) -> None:
    """Have every replica of a running service answer with other weights; return when all do."""
    _check(job)
    home, steps = chosen(config, None).settings.home, Steps()
    try:
        reference = None if which == "previous" else _reference(job, which, WeightsStore(home), Catalog(home))
        from serving.deployments.administering import Service

        rollout = Rollout(Service.join(name, address), PLACES[job], say=steps.every)
        rolled = rollout.use(rollout.previous() if which == "previous" else reference, timeout_s=timeout)
    except AnswerError as error:
        fail(error.message)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    sys.stdout.write(f"before  {one_line(', '.join(rolled.before))}\nafter   {one_line(', '.join(rolled.after))}\n")


def _reference(job: str, which: str, store: WeightsStore, catalog: Catalog) -> str | None:
    """The reference that ``which`` stands for, once it is seen to be there."""
    if which == "base":
        return None
    if which == "shipped":
        reference = f"shipped:{PLACES[job].shipped}"
        catalog.locate(reference)
        return reference
    return store.get(job, which).reference


def _check(job: str) -> None:
    if job not in PLACES:
        fail(f"there is no job {job!r}; these are: {', '.join(PLACES)}", code=2)
