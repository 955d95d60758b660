"""The HTML report: one file, nothing loaded from anywhere, readable on a phone and printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from serving.evaluation import plots
from serving.evaluation.estimates import Difference, Estimate, NotApplicable
from serving.evaluation.plots import Axis, Bar, Spread
from serving.evaluation.report import Case, Report, ShownPassage

WORST = 20

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1c20; --soft: #5d6470; --paper: #fff; --line: #d9dde3; --main: #1f5fbf;
  --good: #17703a; --bad: #a8321f; --mark: #eef3fb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ed; --soft: #9aa3b0; --paper: #15171b; --line: #353a43;
  --main: #7fb0ff; --good: #6fcf97; --bad: #ff8f7d; --mark: #1d2635; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p.facts, small, .soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: normal; }
td.number, th.number { text-align: right; white-space: nowrap; }
td:not(.number):not(:first-child) { min-width: 11rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; } svg text { fill: var(--soft); }
.grid { stroke: var(--line); } .guide { stroke: var(--soft); stroke-dasharray: 4 4; } .whisker { stroke: var(--soft); }
.curve { fill: none; stroke: var(--main); stroke-width: 2; } .dot, .thick { fill: var(--main); }
.thin { fill: var(--main); opacity: .4; }
article { border: 1px solid var(--line); border-radius: .4rem; padding: .8rem; margin: 1rem 0; break-inside: avoid; }
article h3 { font-size: 1rem; margin: 0 0 .5rem; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: 1rem; }
.sides > div { min-width: 0; } .passage { margin: 0 0 .8rem; padding: .4rem .6rem; border-left: 3px solid var(--line); }
.passage.cited { border-color: var(--main); background: var(--mark); }
.better { color: var(--good); } .worse { color: var(--bad); } .kin { color: var(--bad); font-weight: 600; }
@media print { body { max-width: none; font-size: 9.5pt; } .wide { overflow: visible; } a { color: inherit; }
  article, figure, tr { break-inside: avoid; } }
"""


def render(report: Report, worst_by: str, differences: Mapping[str, Difference] | None = None) -> str:
    """The page of a report. ``differences`` compares it with an earlier one; ``worst_by`` chooses the worst cases."""
    sections = [
        _head(report),
        _table(report, "Figures", _FIGURES, map(_figure, _named(report)), _caption(report)),
        _matrix(report),
        _confusion(report),
        _compared(differences, report),
        _plots(report),
        _floors(report),
        _table(
            report,
            "Latency by stage, milliseconds",
            ("stage", "n", "p50", "p90", "p99"),
            (
                (each.stage, str(each.n), f"{each.p50:.0f}", f"{each.p90:.0f}", f"{each.p99:.0f}")
                for each in report.latency
            ),
            "A reply that an earlier run generated counts with the time that it took then." if report.latency else "",
        ),
        _worst(report, worst_by),
        _failures(report),
    ]
    title = f"{report.suite.name}: evaluation"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{''.join(sections)}</body>\n</html>\n"
    )


_FIGURES = ("figure", "value", "95 % interval", "n", "not applicable")


def _head(report: Report) -> str:
    suite = report.suite
    chosen = f"{suite.chosen} of {suite.rows} rows" + (f", {len(suite.bad)} bad ones left out" if suite.bad else "")
    versions = ", ".join(f"{name} {value}" for name, value in report.versions.model_dump().items() if value)
    bad = "".join(f"<li>{escape(line)}</li>" for line in suite.bad[:20])
    return (
        f"<h1>{escape(suite.name)} <small>{escape(suite.format)} suite</small></h1>\n"
        f'<p class="facts">{escape(chosen)}, seed {report.seed}, {report.failed} failed · '
        f"{report.made_at:%Y-%m-%d %H:%M} UTC<br><code>{escape(report.command)}</code><br>{escape(versions)}</p>\n"
        + (f"<details><summary>Bad rows</summary><ul>{bad}</ul></details>\n" if bad else "")
    )


def _caption(report: Report) -> str:
    if report.grader is None:
        return ""
    if report.grader.kind == "reference":
        return "No grader: judged by reference strings, labels, numbers and names."
    return f"Grader: {report.grader.name}, threshold {report.grader.threshold}."


def _kin(report: Report) -> str:
    if report.grader is None or not report.grader.kin:
        return ""
    return '<p class="kin">The grader is of the gate model’s own kin: these figures flatter it.</p>\n'


def _named(report: Report) -> Iterable[tuple[str, str, Estimate]]:
    return ((each.name, each.better, each.estimate) for each in report.metrics)


def _figure(row: tuple[str, str, Estimate]) -> tuple[str, ...]:
    name, better, estimate = row
    reasons = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in estimate.not_applicable.items())
    label = f"{name} (lower is better)" if better == "lower" else name
    return label, _value(estimate.value), _interval(estimate.low, estimate.high), str(estimate.n), reasons


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _table(
    report: Report,
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    *,
    styled: Callable[[int], str] | None = None,
) -> str:
    """A table; a cell that holds a number, an interval or a dash is set as one. Empty when it has no rows."""
    body = ""
    numeric: list[str] = []
    for number, row in enumerate(rows):
        kind = f' class="{styled(number)}"' if styled and styled(number) else ""
        numeric = numeric or [_numeric(cell) for cell in row]
        cells = "".join(f"<td{_numeric(cell)}>{_breakable(cell)}</td>" for cell in row[1:])
        body += f"<tr{kind}><td>{_breakable(row[0])}</td>{cells}</tr>\n"
    if not body:
        return ""
    head = "".join(f"<th{kind}>{escape(each)}</th>" for each, kind in zip(header, ["", *numeric[1:]], strict=True))
    said = f'<p class="soft">{escape(caption)}</p>\n' if caption else ""
    return (
        f'<h2>{escape(title)}</h2>\n{_kin(report)}{said}<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def _breakable(text: str) -> str:
    """Escaped, with a place to break a line after each underscore of a long name."""
    return escape(text).replace("_", "_<wbr>")


_NUMBER = re.compile(r"[-+]?\d[\d.]*(?: to [-+]?[\d.]+)?|–")


def _numeric(cell: str) -> str:
    return ' class="number"' if _NUMBER.fullmatch(cell) else ""


def _matrix(report: Report) -> str:
    counts = report.matrix
    if counts is None:
        return ""
    rows = [
        ("can be answered", str(counts.answerable_answered), str(counts.answerable_declined)),
        ("cannot", str(counts.unanswerable_answered), str(counts.unanswerable_declined)),
    ]
    return _table(report, "Answered and declined", ("the question", "answered", "declined"), rows)


def _confusion(report: Report) -> str:
    found = report.confusion
    if found is None:
        return ""
    rows = [(label, *map(str, counts)) for label, counts in zip(found.labels, found.counts, strict=True)]
    caption = f"{found.unlabelled} queries have no label." if found.unlabelled else ""
    return _table(report, "Routes: expected down, taken across", ("", *found.labels), rows, caption)


def _compared(differences: Mapping[str, Difference] | None, report: Report) -> str:
    if not differences:
        return ""
    lower = {each.name for each in report.metrics if each.better == "lower"}

    def told(name: str, found: Difference) -> str:
        if found.low is None or found.high is None or found.low <= 0 <= found.high:
            return ""
        return "better" if (found.low > 0) != (name in lower) else "worse"

    named = list(differences.items())
    rows = [
        (
            name,
            "–" if found.value is None else f"{found.value:+.3f}",
            "–" if found.low is None or found.high is None else f"{found.low:+.3f} to {found.high:+.3f}",
            "–" if found.p is None else f"{found.p:.3f}",
            str(found.n),
            told(name, found) or "no difference shown",
        )
        for name, found in named
    ]
    header = ("figure", "difference", "95 % interval", "p", "n", "")
    return _table(
        report,
        "Against the earlier report",
        header,
        rows,
        "Paired bootstrap over the cases that both have.",
        styled=lambda number: told(*named[number]),
    )


def _plots(report: Report) -> str:
    figures: list[tuple[str, str]] = []
    unit = Axis("", 0, 1)
    if len(report.risk_coverage) > 1:
        points = [Spread(point.coverage, point.risk) for point in report.risk_coverage]
        figures.append(
            ("Risk and coverage", plots.line(points, Axis("coverage", 0, 1), Axis("risk", 0, 1), "Risk by coverage"))
        )
    if report.calibration:
        points = [Spread(each.confidence, each.accuracy) for each in report.calibration]
        drawn = plots.line(points, Axis("stated", 0, 1), Axis("true", 0, 1), "Calibration", diagonal=True)
        figures.append(("Calibration", drawn))
    depths = [(each.k, each.ndcg) for each in report.depths if each.ndcg.value is not None]
    if depths:
        points = [Spread(k, found.value or 0.0, found.low, found.high) for k, found in depths]
        across = Axis("depth", 0, max(k for k, _ in depths))
        figures.append(
            ("nDCG by depth", plots.line(points, across, Axis("nDCG", unit.low, unit.high), "nDCG by depth"))
        )
    if report.latency:
        rows = [Bar(each.stage, each.p50, each.p90) for each in report.latency]
        figures.append(("Latency by stage, p50 / p90", plots.bars(rows, "ms", "Latency by stage")))
    drawn_all = "".join(f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>\n" for name, svg in figures)
    return f'<h2>Plots</h2>\n<div class="plots">\n{drawn_all}</div>\n' if figures else ""


def _floors(report: Report) -> str:
    rows = (
        (
            f"{each.floor:g}",
            _value(each.lost.value),
            _interval(each.lost.low, each.lost.high),
            _value(each.let_through.value),
            _interval(each.let_through.low, each.let_through.high),
        )
        for each in report.floors
    )
    header = ("floor", "answerable lost", "95 % interval", "unanswerable let through", "95 % interval")
    return _table(report, "What a floor under the best passage’s score alone would do", header, rows)


def _worst(report: Report, worst_by: str) -> str:
    cases = report.worst(worst_by, WORST)
    if not cases:
        return ""
    return f"<h2>The worst {len(cases)} cases, by {escape(worst_by)}</h2>\n{_kin(report)}" + "".join(
        _article(case) for case in cases
    )


def _article(case: Case) -> str:
    scores = ", ".join(
        f"{name} {score.value.replace('_', ' ')}" if isinstance(score, NotApplicable) else f"{name} {score:.2f}"
        for name, score in case.scores.items()
    )
    reference = "<br>".join(map(escape, case.reference[:5])) or "–"
    passages = "".join(_passage(number, passage) for number, passage in enumerate(case.passages, start=1))
    return (
        f'<article><h3>{escape(case.question or case.text)}</h3>\n<div class="sides"><div>\n'
        f"<p><b>{escape(case.outcome or '–')}</b><br>{escape(case.text)}</p>\n<p><b>Reference</b><br>{reference}</p>\n"
        f'<p class="soft">{escape(case.id)}: {escape(scores)}</p>\n</div><div>{passages or "<p>no passages</p>"}</div>'
        "</div></article>\n"
    )


_LONGEST = 1200


def _passage(number: int, passage: ShownPassage) -> str:
    said = [word for word, holds in (("cited", passage.cited), ("supporting", passage.supporting)) if holds]
    if passage.supporting is False:
        said.append("not supporting")
    text = passage.text if len(passage.text) <= _LONGEST else f"{passage.text[:_LONGEST]}…"
    kind = " cited" if passage.cited else ""
    return (
        f'<div class="passage{kind}"><b>[{number}] {escape(passage.title)}</b> '
        f'<span class="soft">{escape(", ".join(said))}</span><br>{escape(text)}</div>\n'
    )


def _failures(report: Report) -> str:
    broken = [(case.id, case.error or "", case.question) for case in report.cases if case.error]
    return _table(report, "Failed cases", ("case", "error", "question"), broken)
