"""An HTML page as Markdown: its main text without navigation, banners and footers, with its title, address and date."""

from __future__ import annotations

import logging
import re
from copy import deepcopy
from datetime import datetime
from typing import NamedTuple

import htmldate
import lxml.etree
import lxml.html
import trafilatura
from trafilatura.settings import use_config

from serving.retrieval.documents import SkipReason
from serving.retrieval.sources.decoding import SkipError
from serving.retrieval.sources.front_matter import as_date

# What it logs, of pages it finds little in, is what is reported here.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("htmldate").setLevel(logging.CRITICAL)


_CONFIG = use_config()
# Of shorter texts the headings are lost: all of the page is then taken, as plain text. By default 250 characters.
_CONFIG.set("DEFAULT", "MIN_EXTRACTED_SIZE", "50")


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


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
    _drop_control_characters(tree)
    try:
        return _read(tree)
    except (SkipError, MemoryError):
        raise
    except Exception as error:  # whatever a stranger's page makes of three libraries, the other pages are read
        raise SkipError(SkipReason.UNREADABLE, f"no page that can be read: {type(error).__name__}: {error}") from error


def _read(tree: lxml.html.HtmlElement) -> Page:
    metadata = trafilatura.extract_metadata(tree, date_config={"extensive_search": False}, extensive=False)
    published_at = _date(tree)
    main = trafilatura.extract(
        tree,
        output_format="markdown",
        include_formatting=True,
        include_tables=True,
        include_comments=False,
        favor_recall=True,
        config=_CONFIG,
    )
    if not main or not main.strip():
        raise SkipError(SkipReason.EMPTY, "no main text in the page")
    return Page(main, metadata.title, _address(metadata.url), published_at)


def _drop_control_characters(tree: lxml.html.HtmlElement) -> None:
    """The parser lets them in, written as they are or as entities; whoever sets such a text again gets an error."""
    for element in tree.iter():
        if element.text and _CONTROL.search(element.text):
            element.text = _CONTROL.sub("", element.text)
        if element.tail and _CONTROL.search(element.tail):
            element.tail = _CONTROL.sub("", element.tail)
        for name, value in element.attrib.items():
            if _CONTROL.search(value):
                element.set(name, _CONTROL.sub("", value))


def _date(tree: lxml.html.HtmlElement) -> datetime | None:
    """The date that the page's metadata gives: dates in its text, or in a copyright line, are not the page's."""
    metadata = lxml.html.document_fromstring("<html><head></head><body></body></html>")
    head = metadata.find("head")
    for element in tree.iter("meta", "link", "script"):
        if element.tag != "script" or element.get("type") == "application/ld+json":
            head.append(deepcopy(element))
    # First how current the page is; where only its first day is told, that.
    found = (htmldate.find_date(metadata, extensive_search=False, original_date=original) for original in (False, True))
    return as_date(next(filter(None, found), None))


def _address(url: str | None) -> str | None:
    return url if url and url.startswith(("https://", "http://")) else None
