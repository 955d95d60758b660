"""What ``answer calibrate`` found: one document for programs; for people histograms, figures, and what to set."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.text import Text

from serving.cli.scoring import Case, Failure
from serving.evaluation.estimates import Estimate
from serving.evaluation.published import LOST_BY_A_STRICT_FLOOR
from serving.evaluation.score_floors import BINS, Calibration, Floor, Spread

BAR = 19
"""Characters of the longest bar."""

NOT_THE_GATE = (
    "The floor discards noise before composing; it is not the gate. Whether a question is answered is decided by "
    "proving each sentence against the passages it cites. A floor that is to do that job loses what could be answered: "
    f"elsewhere, {LOST_BY_A_STRICT_FLOOR:.0f} % of the answerable questions, at the floor that stopped all the others."
)

_EIGHTHS = " ▏▎▍▌▋▊▉"


class FloorReport(BaseModel):
    """The whole of a run. ``rows`` are the file's good ones, ``chosen`` those that were to be scored;
    ``complete``: they were, and no interruption or failure cut the run short.

    ``nothing_found`` counts questions without any passage: they are lost without a floor, and left out here.
    ``published_lost_percent`` is what the floor that stops every unanswerable question lost elsewhere.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    file: str
    rows: int
    chosen: int
    seed: int
    complete: bool
    bad_rows: tuple[str, ...]
    failed: tuple[Failure, ...]
    nothing_found: int
    index: str
    passages: int
    candidates: int
    reranker: str
    settings: str
    calibration: Calibration
    set: str
    published_lost_percent: float
    note: str = NOT_THE_GATE
    cases: tuple[Case, ...]


def render(report: FloorReport, console: Console) -> None:
    """Prints the report for people, within 80 columns."""
    found = report.calibration
    counted = f"{found.answerable.mean.n} answerable and {_count(found.unanswerable)} unanswerable questions"
    console.print(Text.assemble(("Best passage's score", "bold"), f" of {counted}"))
    where = f"  index {report.index}: {report.passages} passages, {report.candidates} reranked a question"
    console.print(Text(f"{where}\n  reranker {report.reranker}\n", style="dim"))
    if not report.complete or report.failed or report.nothing_found:
        console.print(Text(_missing(report), style="yellow"))
    for line in (*histogram(found), Text(), *_spreads(found), Text(), *_floors(found)):
        console.print(line, soft_wrap=True)
    for sentence in (*verdicts(found), report.note):
        console.print(Text(f"\n{sentence}"))
    value = report.set.partition("=")[2]
    console.print(Text("\nNothing was changed. To use the proposed floor:", style="bold"))
    console.print(Text(f"  --set {report.set}\nor in the configuration file:\n  answer:\n    score_floor: {value}"))


def histogram(found: Calibration) -> Iterator[Text]:
    """A row for each bin between the lowest and the highest score, with what a floor at its lower end does.

    Bars are shares of their kind, on one scale.
    """
    yes, no = _shares(found.answerable), _shares(found.unanswerable)
    longest = max(*yes, *no)
    now, new = _bin(found.current.loss.floor), _bin(found.proposal.setting)
    seen = [place for place in range(BINS) if yes[place] or no[place]] + [now, new]
    yield Text(f" from  {'answerable':<{BAR}}  {'unanswerable':<{BAR}}    lost  let through", style="bold")
    for place in range(min(seen), max(seen) + 1):
        loss = found.floors[place]
        marks = ", ".join(name for name, at in (("now", now), ("new", new)) if at == place)
        yield Text.assemble(
            f" {loss.floor:4.2f}  ",
            (f"{bar(yes[place] / longest):<{BAR}}", "green"),
            "  ",
            (f"{bar(no[place] / longest):<{BAR}}", "magenta"),
            f"{_percent(loss.lost):>8}{_percent(loss.let_through):>13}",
            (f"  ◄ {marks}" if marks else "", "bold"),
        )


def bar(share: float, width: int = BAR) -> str:
    """A bar of ``share``, in [0, 1], of a width in characters, to an eighth of one; whatever is above 0 shows."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def verdicts(found: Calibration) -> Iterator[str]:
    """What the figures mean, a sentence or two each."""
    proposal, now = found.proposal, found.current
    allowed = f"{100 * proposal.lose:g} %"
    holds = "within" if (now.loss.lost.value or 0.0) <= proposal.lose else "more than"
    yield f"The floor now, {now.loss.floor:g}, loses {_lost(now)}: {holds} {allowed}."
    exact = proposal.exact
    yield (
        f"The highest floor that loses at most {allowed} of these is {exact.value:.3f}{_interval(exact, 3)}; "
        f"proposed is {proposal.setting:g}, which loses {_lost(proposal.at)}."
    )
    if not proposal.shown:
        most = proposal.at.lost_at_most or 0.0
        lowest = "With so few, that is just the lowest score seen. " if exact.n * proposal.lose < 1 else ""
        yield (
            f"{lowest}Of all questions like these it may lose up to {_said(most)} (95 % confidence). "
            f"To show {allowed}, it takes {proposal.needed} answerable questions with none lost, or more with some."
        )
    if found.separation.value is not None:
        yield (
            f"An answerable question scores above an unanswerable one in {_percent(found.separation)} of pairs"
            f"{_interval(found.separation, 1, 100)} (AUROC)."
        )
    if found.strict is not None:
        strict = found.strict
        yield f"A floor that stops every unanswerable question here, {strict.loss.floor:g}, loses {_lost(strict)}."


def _missing(report: FloorReport) -> str:
    """What the figures leave out."""
    cut = "" if report.complete else f"cut short: {len(report.cases)} of {report.chosen} questions; "
    return f"{cut}{len(report.failed)} failed, for {report.nothing_found} nothing was found: these are left out\n"


def _spreads(found: Calibration) -> Iterator[Text]:
    yield Text(f"{'scores':<13}  lowest     5 %  median    95 %  highest  mean [95 %]", style="bold")
    for name, spread in (("answerable", found.answerable), ("unanswerable", found.unanswerable)):
        if spread is not None:
            figures = f"{spread.lowest:8.3f}{spread.p05:8.3f}{spread.median:8.3f}{spread.p95:8.3f}{spread.highest:9.3f}"
            yield Text(f"{name:<13}{figures}  {spread.mean.value:.3f}{_interval(spread.mean, 3)}")


def _floors(found: Calibration) -> Iterator[Text]:
    yield Text(f"{'floors':<13}   floor  {'lost [95 %]':<21} {'at most':>8}  let through [95 %]", style="bold")
    for name, floor in (("now", found.current), ("new", found.proposal.at), ("stops others", found.strict)):
        if floor is not None:
            lost, through = floor.loss.lost, floor.loss.let_through
            most = "" if floor.lost_at_most is None else _said(floor.lost_at_most)
            yield Text(
                f"{name:<13}{floor.loss.floor:8.3f}  {_percent(lost) + _interval(lost, 1, 100):<21} {most:>8}  "
                f"{_percent(through)}{_interval(through, 1, 100)}"
            )


def _lost(floor: Floor) -> str:
    lost = floor.loss.lost
    return f"{round((lost.value or 0.0) * lost.n)} of {lost.n} answerable questions ({_percent(lost)})"


def _percent(share: Estimate) -> str:
    return "-" if share.value is None else _said(share.value)


def _said(share: float) -> str:
    return f"{100 * share:.1f} %"


def _interval(found: Estimate, digits: int, factor: float = 1.0) -> str:
    if found.low is None or found.high is None:
        return ""
    return f" [{factor * found.low:.{digits}f}, {factor * found.high:.{digits}f}]"


def _count(spread: Spread | None) -> int:
    return 0 if spread is None else spread.mean.n


def _shares(spread: Spread | None) -> list[float]:
    return [0.0] * BINS if spread is None else [count / spread.mean.n for count in spread.histogram]


def _bin(floor: float) -> int:
    return min(int(floor * BINS + 1e-9), BINS - 1)
