"""HTML: what of a page is its text, and what is around it."""

from datetime import UTC, datetime

import pytest

from serving.retrieval.chunking import passages
from serving.retrieval.documents import Document, SkipReason
from serving.retrieval.sources.decoding import SkipError, declared_charset, decode
from serving.retrieval.sources.web_pages import read_page

PAGE = """<!doctype html>
<html lang="en"><head>
<meta charset="utf-8"><title>Chain – The Docs</title>
<meta property="article:published_time" content="2024-03-05T10:00:00+02:00">
<link rel="canonical" href="https://docs.example/chain">
<style>p { color: red }</style><script>var tracked = true;</script>
</head><body>
<div id="cookie-banner" class="cookie-consent"><p>We use cookies to improve things. Accept all?</p></div>
<header class="site-header"><a href="/">The Docs Site</a></header>
<nav><ul><li><a href="/">Home</a></li><li><a href="/install">Installation guide</a></li></ul></nav>
<main><article>
<h1>Chain</h1>
<p>Chain makes one iterator of many. It treats consecutive sequences as a <a href="/x">single</a> sequence.</p>
<h2>Usage</h2>
<p>Call it with <code>chain(a, b)</code> and go on:</p>
<pre><code class="language-python">from itertools import chain
for x in chain("ab", "cd"):
    print(x)
</code></pre>
<h3>Costs</h3>
<table><thead><tr><th>call</th><th>cost</th></tr></thead>
<tbody><tr><td>chain</td><td>O(1)</td></tr><tr><td>next</td><td>O(n)</td></tr></tbody></table>
<ul><li>The first point.</li><li>The second point.</li></ul>
</article></main>
<aside class="sidebar"><p>Sponsored: buy our mattresses today.</p></aside>
<footer><p>Copyright 2019 by nobody at all.</p></footer>
</body></html>"""


def test_a_page_is_its_main_text_under_its_headings() -> None:
    page = read_page(PAGE)
    assert (page.title, page.url) == ("Chain", "https://docs.example/chain")
    assert page.published_at == datetime(2024, 3, 5, tzinfo=UTC)
    found = {passage.heading_path: passage.text for passage in passages(Document(page.text, "Chain", "docs"))}
    assert list(found) == [("Chain",), ("Chain", "Usage"), ("Chain", "Usage", "Costs")]
    assert found["Chain",].startswith("Chain makes one iterator of many.")
    assert '```\nfrom itertools import chain\nfor x in chain("ab", "cd"):\n    print(x)\n```' in found["Chain", "Usage"]
    costs = found["Chain", "Usage", "Costs"]
    assert "| chain | O(1) |" in costs
    assert "- The second point." in costs


@pytest.mark.parametrize(
    "around", ["cookies", "Installation guide", "Docs Site", "mattresses", "Copyright", "tracked", "red"]
)
def test_what_is_around_the_text_is_left_out(around: str) -> None:
    assert around in PAGE
    assert around not in read_page(PAGE).text


def test_a_short_page_keeps_its_headings() -> None:
    page = read_page("<title>T</title><h1>Head</h1><p>One sentence.</p><h2>Below</h2><p>Another.</p>")
    assert page.text.splitlines()[0] == "# Head"
    assert "## Below" in page.text
    text = "All of this content has moved into the book on the language, some time ago, and is there."
    longer = read_page(
        "<html><head><title>x</title></head><body><div id=version><a href=/>Site</a></div>"
        f"<h1 class=title>Head line</h1>\n<p>{text}</p><h2>Below</h2><p>{text}</p>"
        "<footer><p>Foot</p></footer></body></html>"
    )
    assert longer.text == f"# Head line\n\n{text}\n\n## Below\n\n{text}"


def test_dates_in_the_text_are_not_the_pages() -> None:
    page = read_page("<h1>War</h1><p>It began on 3 March 2021 and ended on 2022-05-06.</p><p>Copyright 2020</p>")
    assert page.published_at is None


@pytest.mark.parametrize(
    "metadata",
    [
        '<meta name="date" content="2022-02-03">',
        '<script type="application/ld+json">{"@type": "Article", "datePublished": "2022-02-03"}</script>',
    ],
)
def test_dates_in_metadata_are_the_pages(metadata: str) -> None:
    page = read_page(f"<head>{metadata}</head><body><p>It began on 2021-05-06.</p></body>")
    assert page.published_at == datetime(2022, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    "page",
    [
        "<p>&#xD800; &#0; text here</p>",
        "<h1>&#11;&#x1;</h1><p title='&#2;'>text here\x0c</p>\x1f\ufffe",
        "<svg><text>text here</text></svg>",
        "text here",
        "<?xml version='1.0' encoding='utf-16'?><p>text here</p>",
        "<ul><li>text here" * 500,
        "<link rel=canonical href='http://[::'><p>text here</p>",
        "<meta property='og:url' content='javascript:alert(1)'><p>text here</p>",
    ],
)
def test_odd_pages_that_have_text(page: str) -> None:
    found = read_page(page)
    assert "text here" in found.text
    assert found.text.encode()
    assert found.url is None


@pytest.mark.parametrize(
    "page", ["<script>var x = 1</script>", "<html></html>", "<!-- a comment -->", "<div>" * 20_000]
)
def test_pages_that_have_none(page: str) -> None:
    with pytest.raises(SkipError) as caught:
        read_page(page)
    assert caught.value.reason is SkipReason.EMPTY


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="iso-8859-1">', "cp1252"),
        ("<META HTTP-EQUIV=Content-Type content='text/html; charset=windows-1251'>", "windows-1251"),
        ("<?xml version='1.0' encoding='Shift_JIS'?>", "shift_jis"),
        ("<meta charset=utf-16>", "utf-8"),  # it was read as ASCII, so it is not that
        ("<meta charset=GBK>", "gb18030"),
    ],
)
def test_the_declared_charset_is_honoured(head: str, encoding: str) -> None:
    text = {"windows-1251": "Привет", "shift_jis": "日本語", "gb18030": "中文"}.get(encoding, "café")
    page = f"{head}<p>{text}</p>".encode(encoding)
    assert text in decode(page, declared_charset(page))


@pytest.mark.parametrize("label", ["nonsense", "punycode", "unicode_escape", "base64", "utf-7", "idna", "rot13"])
def test_a_charset_that_no_page_has(label: str) -> None:
    with pytest.raises(SkipError, match=label) as caught:
        declared_charset(f"<meta charset={label}>".encode())
    assert caught.value.reason is SkipReason.BAD_ENCODING


def test_without_a_declaration_nothing_is_guessed() -> None:
    page = "<p>café</p>".encode("latin-1")
    with pytest.raises(SkipError) as caught:
        decode(page, declared_charset(page))
    assert caught.value.reason is SkipReason.BAD_ENCODING
