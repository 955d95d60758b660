"""The rules on examples, on any text, on long text, and on public question sets."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.escalation import EscalationMonitor
from serving.answer.routing import RuleClassifier, classify
from serving.answer.types import Deadline, Route

DATA = Path(os.environ.get("ANSWER_EVAL_DATA", Path(__file__).parents[3].parent / "shared" / "data")) / "route"

NAVIGATIONAL = """
github.com|docs.python.org|github.com login|https://docs.python.org/3/library/itertools.html|http://localhost:8000/docs
https://example.com/search?q=what|www.python.org|www python org|ww.github.com|github .com|GitHub.com/python/cpython
youtube|hacker news|Hacker News|pypi login|pypi sign in|nookipedia homepage|mtb-news website|openstore official site
google account|github status|go to nookipedia|open flickr.com|log in to pluralsight|code.org|time.com|münchen.de
ｇｉｔｈｕｂ．ｃｏｍ|stack overflow|notion webmail
"""
AGENTIC = """
how does a skip list compare to a btree|compare postgres and mysql|postgres vs mysql|postgres vs. mysql
what is the difference between a tuple and a list|is redis faster than memcached?|How do TCP and UDP differ from QUIC?
which is older, the British Empire or the Ethiopian Empire?|which of numpy or pandas came first
Were Scott Derrickson and Ed Wood of the same nationality?|What are both Eleutherococcus and Amaryllis?
who founded google and when did they go public|What is a list? And how do I sort it?
which country has the most medals among the nordic countries|how many of the senators were born abroad
who was the director of the film that won best picture in 1998|When did the philosopher whose works inspired her die?
Who replaced the meteorologist? Who did the band of the singer who left in 1999 sign with?
explain first how the lexer works and then how the parser uses it|how has python changed since 3.8
was it founded before or after the war|What are the ages of the top 5 highest-grossing actors?
Between Monkey Gland and The Goldeneye, which cocktail needs more?|Did Alice and Bob win?
what are the pros and cons of microservices|is it better to use a list or a tuple|Is a map or a tree faster?
Did Plato die before Aristotle was born?
"""
SINGLE_PASS = """
What does itertools.chain do?|itertools.chain|os.path.join|setup.py|main.rs|logging.info|java.io|requirements.in|asp.net
what is github.com?|github.com?|how to login to pypi|is github.com down|can i log in to github|why is youtube slow
photosynthesis|python list comprehension|machine learning|savings account|python 3.12 support|open source
oauth login error|how to build a website|what is the difference operator in python sets
what is a comparison operator|go to statement|what changed in python 3.12|is water wet or dry
how to install vs code|who won more than 5 world cups|tallest building in the world of all time
who wrote don quixote|Explain closures|where and when was she born|tallest mountain|1.2.3|me@example.com
"""


def _lines(block: str) -> list[str]:
    return [line for row in block.strip().splitlines() for line in row.split("|")]


@pytest.mark.parametrize("question", _lines(NAVIGATIONAL))
def test_places_go_to_search(question: str) -> None:
    assert classify(question).route is Route.SEARCH, classify(question)


@pytest.mark.parametrize("question", _lines(AGENTIC))
def test_comparisons_chains_and_sets_are_agentic(question: str) -> None:
    assert classify(question).route is Route.AGENTIC, classify(question)


@pytest.mark.parametrize("question", _lines(SINGLE_PASS))
def test_everything_else_takes_a_single_pass(question: str) -> None:
    assert classify(question).route is Route.SINGLE_PASS, classify(question)


@pytest.mark.parametrize(
    ("question", "cue"),
    [
        ("how does a skip list compare to a btree", 'comparison: "compare to"'),
        ("is redis faster than memcached?", 'comparison: "faster … than"'),
        ("What does itertools.chain do?", 'question word: "what"'),
        ("what's new", 'question word: "what"'),
        ("isn't it odd", 'auxiliary: "isn\'t"'),
        ("describe closures", 'request: "describe"'),
        ("conjoined twins are known as what", 'question word: "what"'),
        ("closures?", 'question mark: "?"'),
        ("GitHub.com", 'domain: "github.com"'),
        ("pypi login", 'part of a site: "login"'),
        ("effects of caffeine on sleep quality in older adults", "long informational: 9 words"),
        ("Did Alice and Bob win?", 'two names: "Alice and Bob"'),
        ("photosynthesis", "ambiguous"),
        ("", "ambiguous"),
        (" \n\t ", "ambiguous"),
    ],
)
def test_the_cue_names_the_rule_and_the_words(question: str, cue: str) -> None:
    assert classify(question).cue == cue


async def test_the_seam_gives_what_the_function_gives() -> None:
    deadline = Deadline.after(1.0, lambda: 0.0)
    assert await RuleClassifier().classify("github.com", deadline=deadline) == classify("github.com")


@given(st.text())
def test_any_text_gets_a_route_and_a_short_cue(question: str) -> None:
    routing = classify(question)
    assert routing.cue
    assert len(routing.cue) <= 120
    assert routing == classify(question)


@given(st.sampled_from(_lines(NAVIGATIONAL)), st.sampled_from(["what is ", "How do I open ", "is ", "Can I "]))
def test_a_question_about_a_place_is_never_sent_to_search(place: str, opening: str) -> None:
    assert classify(opening + place).route is not Route.SEARCH
    assert classify(f"{place} ?").route is not Route.SEARCH
    assert classify(f"{place.rstrip('?')}？").route is not Route.SEARCH


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "which ",
            "which first or ",
            "what ? ",
            "compare",
            "the top 5 ",
            "of the ",
            "and what ",
            ", or ",
            "who, ",
        ),
        *(
            "a.",
            ".com",
            "a.b-",
            "www ",
            "how has ",
            "first ",
            "between and ",
            "more more ",
            "\u0300\u0316",
            "\ufdfa",
            "? ",
        ),
        *("is A and ", "do and share ", "five with the ", "did the "),
    ],
)
def test_the_time_is_linear_in_the_length(unit: str) -> None:
    def seconds(length: int) -> float:
        question = unit * (length // len(unit))
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            classify(question)
            best = min(best, time.process_time() - started)
        return best

    # Four times the text; quadratic time would make it sixteen.
    assert seconds(100_000) < 10 * seconds(25_000) + 0.02


def _routes(name: str) -> Counter[Route]:
    path = DATA / f"{name}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} under {DATA}")
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        return Counter(classify(json.loads(row)["query"]).route for row in rows)


@pytest.mark.parametrize("name", ["nq_open_oracle", "selfaware", "squad2", "hotpotqa", "strategyqa", "fanoutqa"])
def test_questions_are_hardly_ever_sent_to_search(name: str) -> None:
    routes = _routes(name)
    assert routes[Route.SEARCH] <= 0.005 * routes.total()


@pytest.mark.parametrize("name", ["nq_open_oracle", "selfaware", "squad2"])
def test_plain_questions_seldom_escalate(name: str) -> None:
    routes = _routes(name)
    assert routes[Route.AGENTIC] <= 0.05 * routes.total()


@pytest.mark.parametrize(("name", "share"), [("hotpotqa", 0.40), ("fanoutqa", 0.70)])
def test_questions_with_a_cue_escalate(name: str, share: float) -> None:
    routes = _routes(name)
    assert routes[Route.AGENTIC] >= share * routes.total()


def test_navigational_queries_mostly_skip_the_model() -> None:
    routes = _routes("bangs")
    assert routes[Route.SEARCH] >= 0.50 * routes.total()


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    st.lists(st.tuples(st.integers(0, 90), st.sampled_from(Route)), max_size=80),
    st.integers(0, 400),
)
def test_the_monitor_counts_what_is_in_the_window(events: list[tuple[int, Route]], after: int) -> None:
    clock = _Clock()
    # A window of 300 s in 60 slices: each slice is 5 s.
    monitor = EscalationMonitor(clock, window_s=300.0, minimum=5)
    seen: list[tuple[float, Route]] = []
    for pause, route in events:
        clock.now += pause
        monitor.record(route)
        seen.append((clock.now, route))
    clock.now += after
    inside = [route for at, route in seen if at // 5 > clock.now // 5 - 60]
    share = inside.count(Route.AGENTIC) / len(inside) if inside else 0.0
    assert monitor.rate() == share
    assert monitor.alarmed == (len(inside) >= 5 and share > 0.30)


def test_the_monitor_stays_small_and_forgets() -> None:
    clock = _Clock()
    monitor = EscalationMonitor(clock)
    for step in range(20_000):
        clock.now = step * 0.5
        monitor.record(Route.AGENTIC)
    assert monitor.alarmed
    assert len(monitor._slices) <= 60
    clock.now += 300.0
    assert monitor.rate() == 0.0
    assert not monitor.alarmed


def test_what_counts_as_escalated_is_an_argument() -> None:
    monitor = EscalationMonitor(_Clock(), minimum=1, escalated={Route.SINGLE_PASS, Route.AGENTIC})
    monitor.record(Route.SINGLE_PASS)
    monitor.record(Route.SEARCH)
    assert monitor.rate() == 0.5
    assert monitor.alarmed


@pytest.mark.parametrize("wrong", [{"window_s": 0.0}, {"window_s": float("nan")}, {"alarm_above": 1.5}, {"minimum": 0}])
def test_the_monitor_refuses_settings_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EscalationMonitor(_Clock(), **wrong)  # type: ignore[arg-type]
