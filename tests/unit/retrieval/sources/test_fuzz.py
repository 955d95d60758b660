"""Any bytes at all, under any format: a document or a reason, never an exception, and always storable."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving.retrieval.chunking import passages
from serving.retrieval.documents import Document, Skipped
from serving.retrieval.records import decode, encode
from serving.retrieval.sources.found import Found, Opened
from serving.retrieval.sources.options import Dates, Format, Options
from serving.retrieval.sources.parsing import documents

SYNTAX = {
    Format.MARKDOWN: [
        *("---\n", "+++\n", "title: ", "date: 2024-01-01\n", "# ", "## ", "```\n", "~~~\n", "- ", "> ", "[x](y)", "|"),
        *("&a *a", "{[", '"\\ud800"', "!!x ", "1:60", ": ", "\n"),
    ],
    Format.HTML: [
        *(
            "<p>",
            "</p>",
            "<h1>",
            "<div>",
            "<table>",
            "<td>",
            "<pre>",
            "<ul><li>",
            "<nav>",
            "<svg>",
            "</html>",
            "<title>",
        ),
        *("<!--", "-->", "<script type=application/ld+json>", "<meta charset=", "utf-16", "<?xml ", "<![CDATA["),
        *("<meta name=date content=", "2024-01-01", "<a href=x>", "&#xD800;", "&#0;", "\x0b"),
    ],
    Format.RST: [
        *("====\n", "----\n", ".. ", ".. code::\n", "::\n\n", "   ", ":ref:`", "`", "``", "`_", "<x>`_", ".. _t:\n"),
        *("* ", "|", "+---+\n"),
    ],
    Format.JSONL: [
        *('{"text": "a"}\n', "{", "}", '"text": ', '"id": "1"', ",", "[", "]", "\n", '"published_at": "2024-01-01"'),
        *("\\ud800", "\x1f\x8b", "1e999", "null", '"title": '),
    ],
    Format.TEXT: ["# ", "word ", "\n", ". ", "。", "\x0c", "\x85"],
}


def contents(form: Format) -> st.SearchStrategy[bytes]:
    """Bytes, and text made of what the format gives a meaning to, in some encoding."""
    piece = st.sampled_from(SYNTAX[form]) | st.text(max_size=5)
    text = st.lists(piece, max_size=25).map("".join)
    encoded = st.builds(
        lambda written, encoding: written.encode(encoding, "surrogatepass"),
        text,
        st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    )
    return st.binary(max_size=200) | encoded | st.builds(lambda a, b: a + b, encoded, st.binary(max_size=8))


@pytest.mark.parametrize("form", Format)
def test_any_bytes_give_documents_or_reasons(form: Format) -> None:
    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(content=contents(form))
    def check(content: bytes) -> None:
        found = Found("docs/a", "docs", "a", "/docs/a", form, open=lambda: nullcontext(Opened(io.BytesIO(content))))
        for item in documents(found, Options(dates=Dates.FILE)):
            assert isinstance(item, (Document, Skipped))
            if isinstance(item, Skipped):
                assert json.dumps([item.path, item.detail], ensure_ascii=False).encode()
                continue
            assert item.fingerprint
            assert item.key.encode()
            for passage in passages(item):
                assert decode(encode(passage)) == passage
                assert json.dumps([passage.title, passage.text, passage.heading_path], ensure_ascii=False).encode()

    check()
