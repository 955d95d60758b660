"""The HTML report: whole, self-contained, escaped, and with everything in it that it has to show."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.evaluation import page, plots
from serving.evaluation.estimates import Difference, Estimate
from serving.evaluation.plots import Axis, Bar, Spread
from serving.evaluation.report import Case, Grader, Report
from serving.evaluation.routing import Confusion
from tests.unit.evaluation.answers import answered, declined, qa_row
from tests.unit.evaluation.test_answering import RIGHT, findings
from tests.unit.evaluation.test_report import made

VOID = {"meta", "br", "wbr", "link", "img"}
HOSTILE = "<script>alert(1)</script>\"'&"


class Reader(HTMLParser):
    """Checks that tags nest, and gathers tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def report(**changes: object) -> Report:
    found = findings(
        (qa_row("a"), answered((RIGHT, (0,)))),
        (qa_row("b"), declined()),
        (qa_row("c", answerable=False), answered((RIGHT, (1,)), score=0.6)),
        (qa_row("d"), None),
    )
    parts = {
        name: getattr(found, name)
        for name in (
            "metrics",
            "cases",
            "failed",
            "matrix",
            "risk_coverage",
            "floors",
            "calibration",
            "depths",
            "latency",
        )
    }
    return made({}, **{**parts, **changes})


def test_everything_stands_in_the_page() -> None:
    reader = read(page.render(report(), "usefulness"))
    for title in (
        "Figures",
        "Answered and declined",
        "Risk and coverage",
        "Calibration",
        "nDCG by depth",
        "Latency by stage",
        "worst 3 cases",
        "Failed cases",
        "floor",
    ):
        assert title in reader.text, title
    assert reader.tags.count("svg") == 4
    assert reader.tags.count("article") == 3
    assert reader.text.index("not supporting") > 0


def test_nothing_is_loaded_from_anywhere() -> None:
    html = page.render(report(), "usefulness")
    reader = read(html)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert not {"src", "href", "srcset", "xlink:href"} & {name for name, _ in reader.attributes}
    assert not re.search(r"url\(|@import|https?://", html)
    assert 'name="viewport"' in html
    assert "@media print" in html


def test_what_passages_say_is_text() -> None:
    hostile = Case(id="a", scores={"recall": 0.0}, question=HOSTILE, text=HOSTILE, reference=(HOSTILE,), error=HOSTILE)
    reader = read(page.render(made({"a": 0.0}, cases=(hostile,)), "recall"))
    assert "script" not in reader.tags
    assert HOSTILE in reader.text


def test_every_table_says_that_the_grader_is_kin() -> None:
    kin = Grader(name="twin", kind="nli", kin=True, threshold=0.5)
    html = page.render(report(grader=kin), "usefulness")
    assert html.count("these figures flatter it") == html.count("<table>") + 1  # and the worst cases
    assert "flatter" not in page.render(report(grader=kin.model_copy(update={"kin": False})), "usefulness")


def test_a_difference_is_better_or_worse_by_its_direction() -> None:
    differences = {
        "usefulness": Difference(0.2, 9, 0.1, 0.3, 0.01),
        "aurc": Difference(0.2, 9, 0.1, 0.3, 0.01),
        "str_em": Difference(0.1, 9, -0.1, 0.3, 0.4),
    }
    html = page.render(report(), "usefulness", differences)
    rows = dict(
        re.findall(r'<tr(?: class="(\w+)")?><td>(?:usefulness|aurc|str_<wbr>em)</td>.*?<td>(.*?)</td></tr>', html)
    )
    assert rows == {"better": "better", "worse": "worse", "": "no difference shown"}


def test_routes_are_a_table() -> None:
    found = Confusion(("search", "agentic"), ((3, 1), (0, 2)), unlabelled=4)
    assert "4 queries have no label" in page.render(report(confusion=found), "usefulness")


def test_a_report_without_cases_is_a_page() -> None:
    read(page.render(made({}, cases=(), metrics=()), "recall"))


numbers = st.floats(-10, 10)


@given(st.lists(st.builds(Spread, numbers, numbers), max_size=6))
def test_points_stay_within_the_plot(points: list[Spread]) -> None:
    svg = plots.line(points, Axis("x", 0, 1), Axis("y", 0, 1), "t")
    read(svg)
    xs = [float(x) for x in re.findall(r'cx="([-\d.]+)"', svg)]
    assert len(xs) == len(points)
    assert all(0 <= x <= plots.WIDTH for x in xs)


def test_bars_are_scaled_to_the_longest() -> None:
    svg = plots.bars([Bar("a", 10, 100), Bar("b", 50, 50)], "ms", "t")
    widths = [float(width) for width in re.findall(r'class="thick"[^>]*width="([\d.]+)"', svg)]
    assert widths[1] == pytest.approx(5 * widths[0], rel=0.01)


def test_an_estimate_of_one_has_no_interval() -> None:
    assert np.isfinite(1.0)
    metric = report().metrics[0].model_copy(update={"name": "alone", "estimate": Estimate(0.5, 1)})
    assert '<td>alone</td><td class="number">0.500</td><td class="number">–</td>' in page.render(
        report(metrics=(metric,)), "usefulness"
    )
