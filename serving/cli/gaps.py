"""``answer gaps``: the backlog of declined questions, read and worked off where its database can be reached."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from serving.answer.errors import AnswerError
from serving.answer.types import DeclineReason
from serving.cli.client import DEFAULT_URL
from serving.cli.console import Steps, fail, one_line
from serving.cli.help import epilog
from serving.cli.options import Config, chosen
from serving.gaps.records import GapOut, GapQuery, Order, State

if TYPE_CHECKING:  # SQLAlchemy takes its time to import
    from serving.gaps.store import GapStore

PAGE = 200

gaps = typer.Typer(
    no_args_is_help=True,
    help="The declined questions: what the corpus should be able to answer.",
    epilog=epilog(
        ("answer gaps list", "what waits, most asked first"),
        ("answer gaps retry --all", "after indexing more: ask again, and close what is answered"),
        after="`answer gaps COMMAND --help` has examples of each.",
    ),
)

Reason = Annotated[DeclineReason | None, typer.Option(help="Only those last declined for this reason.")]
Open = Annotated[bool, typer.Option("--open", help="Those that wait (the default).")]
Resolved = Annotated[bool, typer.Option("--resolved", help="Those that are closed.")]
All = Annotated[bool, typer.Option("--all", help="Both.")]
Ids = Annotated[list[int], typer.Argument(metavar="ID…", help="The gaps' numbers, as `list` shows them.")]


@gaps.command(
    "list",
    epilog=epilog(
        ("answer gaps list", "what waits, most asked first"),
        ("answer gaps list --reason nothing_proven --json", "JSON lines of one reason"),
        after="Next: `answer gaps show ID`.",
    ),
)
def list_gaps(
    *,
    only_open: Open = False,
    only_resolved: Resolved = False,
    both: All = False,
    reason: Reason = None,
    order: Annotated[Order, typer.Option(help="What comes first.")] = Order.MOST_ASKED,
    limit: Annotated[int, typer.Option(min=1, help="Gaps to show.")] = 50,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    config: Config = None,
) -> None:
    """List gaps: how often each was asked, when last, why it was declined."""
    query = GapQuery(state=_state(only_open, only_resolved, both), reason=reason, order=order, limit=min(limit, PAGE))
    with _Opened(config) as store:
        shown = 0
        for gap in _every(store, query, limit):
            shown += 1
            sys.stdout.write(f"{gap.model_dump_json() if json else _line(gap)}\n")
    if not shown:
        sys.stderr.write("no gaps\n")


@gaps.command(
    epilog=epilog(
        ("answer gaps show 12", "each asking, with the passages that were found"),
        ("answer gaps show 12 --json | jq .latest", "for scripts"),
        after="Next: index what is missing, then `answer gaps retry 12`.",
    ),
)
def show(
    gap_id: Annotated[int, typer.Argument(metavar="ID", help="The gap's number.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: Config = None,
) -> None:
    """Show one gap: its wordings, what was retrieved, the versions that declined, how it was closed."""
    from pydantic_core import to_json

    with _Opened(config) as store:
        gap, asked = store.show(gap_id)
    if json:
        both = gap.model_dump() | {"askings": [asking.model_dump() for asking in asked]}
        sys.stdout.write(to_json(both, indent=2).decode() + "\n")
        return
    sys.stdout.write(f"{_line(gap)}\n")
    if gap.resolution:
        by = gap.resolution.answered_request_id
        how = f"answered in request {by}" if by else one_line(gap.resolution.note or "")
        sys.stdout.write(f"  resolved {_time(gap.resolution.at)}  {how}\n")
    for asking in asked:
        cause = f" ({asking.cause.value})" if asking.cause else ""
        sys.stdout.write(f"\n  {_time(asking.asked_at)}  {asking.reason.value}{cause}  {asking.route_ran.value}\n")
        sys.stdout.write(f"    {_question(asking.question, asking.question_hash)}\n")
        made = (f"{name} {value}" for name, value in asking.versions.model_dump().items() if value)
        sys.stdout.write(f"    request {one_line(asking.request_id)}; {one_line(', '.join(made))}\n")
        for passage in asking.passages:
            sys.stdout.write(f"    {passage.score:6.3f}  {one_line(passage.id)}\n")


@gaps.command(
    epilog=epilog(
        ('answer gaps resolve 12 --note "not our subject"', "close it, and say why"),
        ("answer gaps resolve 12 13 14", "several"),
        after="Next: `answer gaps reopen ID` undoes it.",
    ),
)
def resolve(
    ids: Ids,
    note: Annotated[str | None, typer.Option(help="Why they are closed, for whoever looks later.")] = None,
    config: Config = None,
) -> None:
    """Close gaps. They stay closed when they are asked again; `reopen` undoes it."""
    with _Opened(config) as store:
        for gap_id in ids:
            store.resolve(gap_id, at=datetime.now(UTC), note=note)
            sys.stderr.write(f"gap {gap_id} is resolved\n")


@gaps.command(
    epilog=epilog(
        ("answer gaps reopen 12", "it waits again"),
        ("answer gaps reopen 12 13", "several"),
        after="Next: `answer gaps list`.",
    ),
)
def reopen(ids: Ids, config: Config = None) -> None:
    """Open closed gaps again."""
    with _Opened(config) as store:
        for gap_id in ids:
            store.reopen(gap_id)
            sys.stderr.write(f"gap {gap_id} is open\n")


@gaps.command(
    epilog=epilog(
        ("answer gaps export gaps.jsonl", "all that wait, a JSON line each"),
        ("answer gaps export gaps.csv --format csv --all", "open and closed, for a spreadsheet"),
        after="Next: `answer gaps retry --all` once their answers are indexed.",
    ),
)
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write; - for standard output.")],
    *,
    layout: Annotated[str, typer.Option("--format", help="jsonl or csv.")] = "jsonl",
    only_open: Open = False,
    only_resolved: Resolved = False,
    both: All = False,
    reason: Reason = None,
    config: Config = None,
) -> None:
    """Write gaps to a file, oldest last: every field as JSON lines, or the main ones as CSV."""
    from serving.cli.gap_export import FORMATS, write_file

    if layout not in FORMATS:
        fail(f"--format must be one of {', '.join(FORMATS)}, not {layout}", code=2)
    query = GapQuery(state=_state(only_open, only_resolved, both), reason=reason, limit=PAGE)
    steps = Steps()
    with _Opened(config) as store:
        try:
            count = write_file(file, FORMATS[layout], _every(store, query, None), steps)
        except OSError as error:
            fail(f"{file} cannot be written: {error.strerror}")
    steps.say(f"wrote {count} gaps" + ("" if file == "-" else f" to {file}"))


@gaps.command(
    epilog=epilog(
        ("answer gaps retry --all", "ask every open gap again; what is answered now is closed"),
        ("answer gaps retry 12 --url http://10.0.0.5:8000", "one, at a server elsewhere"),
        after="Next: `answer gaps list` shows what is still open.",
    ),
)
def retry(
    ids: Annotated[list[int] | None, typer.Argument(metavar="[ID…]", help="These gaps alone, open or not.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every open gap.")] = False,
    url: Annotated[str, typer.Option(envvar="ANSWER_URL", help="The server to ask.")] = DEFAULT_URL,
    limit: Annotated[int, typer.Option(min=1, help="Gaps to ask, at most.")] = 1_000,
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Deadline of each question in seconds.")] = 60.0,
    config: Config = None,
) -> None:
    """Ask open gaps again, and close what is answered now. Ctrl-C loses nothing: the next run goes on from there."""
    from serving.cli.gap_retry import retry_gaps

    if bool(ids) == every:
        fail("name gaps to ask again, or --all", code=2)
    with _Opened(config) as store:
        ok = retry_gaps(store, ids or None, url=url, limit=limit, timeout_s=timeout, steps=Steps())
    if not ok:
        raise SystemExit(1)


class _Opened:
    """The store that the settings name, and its errors in one line."""

    def __init__(self, config: Path | None) -> None:
        self._config = config
        self._close: Callable[[], None] = lambda: None

    def __enter__(self) -> GapStore:
        from serving.gaps.database import Database
        from serving.gaps.store import GapStore

        settings = chosen(self._config, None).settings
        database = Database.of(settings.gaps, home=settings.home)
        self._close = database.close
        return GapStore(database, settings.gaps)

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._close()
        if isinstance(error, AnswerError):
            fail(error.message)


def _state(only_open: bool, only_resolved: bool, both: bool) -> State | None:
    if only_open + only_resolved + both > 1:
        fail("choose one of --open, --resolved and --all", code=2)
    return None if both else State.RESOLVED if only_resolved else State.OPEN


def _every(store: GapStore, query: GapQuery, limit: int | None) -> Iterator[GapOut]:
    """Gaps, page after page, up to a limit."""
    left = limit
    while left is None or left > 0:
        page = store.page(query)
        yield from page.gaps if left is None else page.gaps[:left]
        if page.next_cursor is None:
            return
        left = None if left is None else left - len(page.gaps)
        query = query.model_copy(update={"cursor": page.next_cursor})


def _line(gap: GapOut) -> str:
    reason = gap.latest.reason.value if gap.latest else ""
    state = "" if gap.state is State.OPEN else "  resolved"
    head = f"{gap.id:>6}  {gap.count:>5}×  {_time(gap.last_seen)}  {reason:<17}"
    return f"{head}{state}  {_question(gap.question, gap.question_hash)}"


def _question(question: str | None, hashed: str) -> str:
    return f"sha256 {hashed}" if question is None else one_line(question)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
