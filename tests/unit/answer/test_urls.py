"""URLs in claims: only those that a cited passage holds, whole."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.types import Passage
from serving.answer.urls import foreign_urls

PASSAGES = [
    Passage(
        id="1",
        title="itertools",
        heading_path=("More at https://more.example/guide",),
        text="See https://docs.example.org/3/a_(b).html, or [guide](guide/start.md), or mail info@acme.com.\n"
        "Write https://x.org/a/b?c=d#e; run `python setup.py`.",
        url="https://docs.python.org/3/library/itertools.html#itertools.chain",
    )
]


@pytest.mark.parametrize(
    "claim",
    [
        "It is described at https://docs.example.org/3/a_(b).html.",
        "See (https://docs.python.org/3/library/itertools.html#itertools.chain).",
        "See <https://x.org/a/b?c=d#e>, **https://x.org/a/b?c=d#e**.",
        "HTTPS://X.ORG/a/b?c=d#e is one.",
        "docs.python.org says so, and so does x.org.",
        "The [guide](guide/start.md) says so.",
        "Write to info@acme.com.",
        "https://more.example/guide/ says more.",
        "itertools.chain joins os.path and setup.py, e.g. a.b.c, x.y or self.name.",
        "Call asyncio.run, subprocess.run, np.pi, torch.nn, email.message and logging.info.",
        "The data: it is; note:this, std::vector, 10:30, {a:b}, lambda x:y and range(1):x.",
        "Version 3.11.2 costs 1.5/2 of a // b, and/or i.e./e.g. U.S./U.K.",
        "A sentence.Another one without a blank. It is in.It was.",
        "http is a protocol, javascript is a language and C:\\x is a path.",
    ],
)
def test_what_a_passage_holds_or_no_client_links_is_let_by(claim: str) -> None:
    assert foreign_urls(claim, PASSAGES) == []


@pytest.mark.parametrize(
    "claim",
    [
        "https://evil.example/",
        "https://docs.example.org/3/other.html",
        "https://x.org/a",
        "https://x.org/A/b?c=d#e",
        "https://x.org/a/b?c=d&e",
        "https://docs.example.org.evil.com/3/a_(b).html",
        "https://docs.example.org@evil.com/3/a_(b).html",
        "https://docs.pуthon.org/3/library/itertools.html#itertools.chain",  # a Cyrillic у
        "docs.pуthon.org",
        "docs.python.org.evil.com",
        "docs.python.org@evil.com",
        "evil.com",
        "EVIL.COM.",
        "www.evil.com",
        "evil.co.uk",
        "evil.com:8080",
        "evil.sh/run",
        "evil。com",
        "ｅｖｉｌ．ｃｏｍ",
        "xn--pthon-5ve.org",
        "//evil.com/x",
        "\\\\evil.com\\x",
        "192.168.0.1:8080/x",
        "http://2130706433/",
        "https:\\\\evil.com",
        "https:/evil.com",
        "http:evil.com",
        "ht\u200btps://evil.com",
        "hxxp://evil.com",
        "ftp://evil.com/x",
        "[guide](javascript:alert(1))",
        "[guide](other/start.md)",
        "[guide](<a b>)",
        "[guide]: other/start.md",
        "![pixel](https://evil.com/p.png?q=secret)",
        "<https://evil.com>",
        "<a href='x'>guide</a>",
        "<img src=x.png>",
        "java\tscript:alert(1)",
        "JaVaScRiPt :alert(1)",
        "&#106;avascript:alert(1)",
        "vbscript:x",
        "data:text/html;base64,PHNjcmlwdD4=",
        "mailto:bob@evil.com",
        "bob@evil.com",
        "tel:+123456",
        "file:///etc/passwd",
    ],
)
def test_what_no_passage_holds_is_named(claim: str) -> None:
    found = foreign_urls(f"It says so: {claim}" if not claim.startswith("[guide]:") else claim, PASSAGES)
    assert found
    assert foreign_urls(claim, []) != []


def test_each_is_named_once_in_order_without_what_stands_after_it() -> None:
    claim = "See https://b.example/x, (https://a.example/y) and https://b.example/x."
    assert foreign_urls(claim, PASSAGES) == ["https://b.example/x", "https://a.example/y"]


PARTS = st.sampled_from(
    [*"/:.@[]()<>#?\\ \n", "https", "evil", "com", "x.org", "a/b", "javascript", "data", "href=", "]("]
)


@given(st.lists(PARTS, max_size=30).map("".join))
def test_what_the_passage_says_word_for_word_is_never_foreign(text: str) -> None:
    assert foreign_urls(text, [Passage(id="1", text=text)]) == []


@given(st.text(max_size=80))
def test_any_string_is_accepted(text: str) -> None:
    foreign_urls(text, PASSAGES)


@pytest.mark.parametrize(
    "unit",
    ["a.", "a@", "//", "](", "http:", "[a]:", "a", "x(y)", ")", "java ", "a-", "href=", "a.b/", "1.2.", "(", "&#"],
)
def test_time_is_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        text = "https://x" + unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            foreign_urls(text, PASSAGES)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(100_000) < 40 * seconds(10_000)  # ten times the text
