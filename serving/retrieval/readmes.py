"""The READMEs of installed distributions as passages: the long description that each carries in its metadata."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.metadata import Distribution
from itertools import islice

from serving.retrieval.chunking import passages
from serving.retrieval.documents import Document
from serving.retrieval.markdown import FenceTracker
from serving.retrieval.rst import to_markdown

MIN_WORDS = 5
"""A passage with fewer is a lone address or a label, and says nothing that could be cited."""

_MAX_CHARACTERS = 100_000
"""More of a README is not looked at: far more than what is taken of it, and little enough for every pattern below."""

_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->[ \t]*", re.DOTALL)
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>((?:(?!<h[1-6]).)*?)</h\1>", re.DOTALL | re.IGNORECASE)
# Code first, so that tags and entities inside it, which are what a sentence is about, are passed over.
_MARKUP = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?:[^`\n]|\n(?!\n))*(?<!`)(?P=ticks)(?!`)"
    r"|</?(?:a|abbr|b|big|blockquote|br|center|code|dd|del|details|dfn|div|dl|dt|em|figure|font|h[1-6]|hr|i|iframe|img"
    r"|ins|kbd|li|nobr|ol|p|picture|pre|s|samp|section|small|source|span|strong|sub|summary|sup|svg|table|tbody|td|tfoot"
    r"|th|thead|tr|u|ul|video)(?:\s[^<>]*)?/?>"
    r"|&#?\w+;",
    re.IGNORECASE,
)
_IMAGE = re.compile(
    r"!\[[^\[\]]*\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)|\[[^\]]*\])?[ \t]*"
)
# Not after a word or a bracket: `x[i](y)` and `x[i][j]` in a sentence are no links.
_LINK = re.compile(
    r"(?<![^\W_])(?<![\])])\[([^\[\]]*)\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)|\[[^\[\]\n]*\])"
)
_LINK_TARGET = re.compile(r"(?m)^ {0,3}\[[^\]\n]+\]:[ \t]*\S.*\n?")
_NO_WORDS = re.compile(r"(?m)^[^\w\n`~=\-#+|:.]+$\n?")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")

_LABELS = (
    ("documentation", "docs", "doc", "readthedocs"),
    ("homepage", "home", "website"),
    ("source", "sourcecode", "repository", "github", "code", "sourcerepository"),
)
"""Labels of project URLs, by preference, lower-case and with nothing but letters."""


def readme_document(distribution: Distribution, limit: int) -> Document | None:
    """A distribution's README as its first ``limit`` passages in reading order; None when it has none to give."""
    metadata = distribution.metadata
    name, version = metadata["Name"] or "", metadata["Version"] or ""
    description = metadata["Description"] or ""
    if not name or description.strip() in {"", "UNKNOWN"}:
        return None
    document = Document(
        text=clean(description[:_MAX_CHARACTERS], metadata["Description-Content-Type"] or ""),
        title=f"{name} {version}".strip(),
        source=name,
        place=f"installed:{name}",
        url=project_url(name, metadata.get_all("Project-URL") or (), metadata["Home-page"]),
    )
    worth_it = (passage for passage in passages(document) if len(passage.text.split()) >= MIN_WORDS)
    ready = tuple(islice(worth_it, limit))
    return replace(document, text="", ready=ready) if ready else None


def project_url(name: str, project_urls: Iterable[str], home_page: str | None) -> str:
    """Where people read about a project: its documentation, home page or source, else its page on PyPI."""
    found: dict[str, str] = {}
    for entry in project_urls:
        label, _, url = entry.partition(",")
        if url.strip().startswith(("https://", "http://")):
            found.setdefault(re.sub(r"[^a-z]", "", label.lower()), url.strip())
    if home_page and home_page.startswith(("https://", "http://")):
        found.setdefault("homepage", home_page)
    wanted = (found[label] for labels in _LABELS for label in labels if label in found)
    return next(wanted, f"https://pypi.org/project/{name}/")


def clean(text: str, content_type: str) -> str:
    """A description as plain Markdown: no badges, images, HTML tags or comments, and links as their text.

    Fenced code stays as it is. Without a content type it is reStructuredText, as the metadata's standard has it, unless
    it has Markdown headings.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/x-rst" or (not kind and not re.search(r"(?m)^#{1,6} \S", text)):
        text = to_markdown(text)
    cleaned = "\n".join(part if is_code else _clean_prose(part) for is_code, part in _parts(text))
    return _BLANK_LINES.sub("\n\n", cleaned)


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Runs of lines, each with whether it is fenced code."""
    fences = FenceTracker()
    held: list[str] = []
    was_code = False
    for line in text.split("\n"):
        is_code = fences.feed(line)
        if held and is_code != was_code:
            yield was_code, "\n".join(held)
            held = []
        was_code = is_code
        held.append(line)
    yield was_code, "\n".join(held)


def _clean_prose(text: str) -> str:
    text = _COMMENT.sub("", text)
    text = _HTML_HEADING.sub(lambda match: f"\n{'#' * int(match[1])} {' '.join(match[2].split())}\n", text)
    text = _MARKUP.sub(_without_markup, text)
    text = _IMAGE.sub("", text)
    text = _LINK_TARGET.sub("", text)
    # Twice: a linked image leaves a link without text around what was the image.
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    return _NO_WORDS.sub("", text)


def _without_markup(match: re.Match[str]) -> str:
    if match["ticks"]:
        return match[0]
    return html.unescape(match[0]) if match[0].startswith("&") else ""
