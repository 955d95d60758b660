"""An HTML page as Markdown: its main text without navigation, banners and footers, with its title, address and date."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import NamedTuple

import lxml.etree
import lxml.html
import trafilatura

from serving.retrieval.documents import SkipReason
from serving.retrieval.sources.decoding import SkipError
from serving.retrieval.sources.front_matter import as_date

# What it logs, of pages it finds little in, is what is reported here.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("htmldate").setLevel(logging.CRITICAL)


class Page(NamedTuple):
    text: str
    title: str | None
    url: str | None
    published_at: datetime | None


def read_page(text: str) -> Page:
    """The page's main text, headings as Markdown; its canonical address and its date where its metadata has them.

    Raises :class:`SkipError` when nothing reads as text.
    """
    # Encoded again: lxml takes no text that declares an encoding.
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        tree = lxml.html.document_fromstring(text.encode(), parser=parser)
    except (lxml.etree.LxmlError, ValueError) as error:
        raise SkipError(SkipReason.EMPTY, "no HTML element") from error
    # Not extensive: dates in the text, or in a copyright line, are not the page's.
    metadata = trafilatura.extract_metadata(tree, date_config={"extensive_search": False}, extensive=False)
    main = trafilatura.extract(
        tree,
        output_format="markdown",
        include_formatting=True,
        include_tables=True,
        include_comments=False,
        favor_recall=True,  # or short pages lose their headings
    )
    if not main or not main.strip():
        raise SkipError(SkipReason.EMPTY, "no main text in the page")
    return Page(main, metadata.title, _address(metadata.url), as_date(metadata.date))


def _address(url: str | None) -> str | None:
    return url if url and url.startswith(("https://", "http://")) else None
