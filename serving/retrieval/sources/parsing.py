"""A file that was found, as documents: one of a text, one a row of JSON Lines; or why it is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from serving.retrieval.chunking import first_heading, passages
from serving.retrieval.documents import Document, Item, Skipped, SkipReason
from serving.retrieval.rst import to_markdown
from serving.retrieval.sources import front_matter, rows
from serving.retrieval.sources.decoding import SkipError, declared_charset, decode
from serving.retrieval.sources.found import Found, Opened
from serving.retrieval.sources.options import Dates, Format, Options

MAX_TITLE_CHARACTERS = 300
"""A title stands in every passage of its document."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def documents(found: Found, options: Options) -> Iterator[Item]:
    """What ``found`` holds. Never raises for what is in the file, nor for a file that is gone or cannot be opened."""
    try:
        if found.format is None:
            raise SkipError(SkipReason.OTHER_TYPE)
        with found.open() as opened:
            if found.format is Format.JSONL:
                yield from rows.documents(found, opened.stream, options.dates, opened.dated)
            else:
                yield _document(found, found.format, opened, options)
    except SkipError as skip:
        yield Skipped(found.path, skip.reason, str(skip))
    except OSError as error:
        yield Skipped(found.path, SkipReason.UNREADABLE, error.strerror or str(error))


class _Parsed(NamedTuple):
    text: str
    title: str | None = None
    published_at: datetime | None = None
    url: str | None = None


def _document(found: Found, form: Format, opened: Opened, options: Options) -> Document:
    parsed = _parse(form, _content(opened, options.max_bytes))
    published = {
        Dates.FRONT_MATTER: parsed.published_at,
        Dates.FILE: parsed.published_at or opened.dated,
        Dates.NONE: None,
    }[options.dates]
    name = (found.source_path or found.source).rpartition("/")[2]
    document = Document(
        text=parsed.text,
        title=_title(parsed.title) or _title(first_heading(parsed.text)) or name,
        source=found.source,
        source_path=found.source_path,
        url=parsed.url,
        repo_path=found.repo_path,
        commit_sha=found.commit_sha,
        published_at=published,
        place=found.place,
    )
    if next(passages(document), None) is None:
        raise SkipError(SkipReason.EMPTY, "no text under its headings")
    return document


def _content(opened: Opened, max_bytes: int) -> bytes:
    if opened.size is None or opened.size <= max_bytes:
        # One more than may be there: some files are longer than they say, and some grow.
        content = opened.stream.read(max_bytes + 1)
        if len(content) <= max_bytes:
            return content
    size = f"{opened.size} bytes" if opened.size else "it goes on"
    raise SkipError(SkipReason.TOO_LARGE, f"{size}; more than {max_bytes} bytes are read with --max-file-mb")


def _parse(form: Format, content: bytes) -> _Parsed:
    if form is Format.HTML:
        from serving.retrieval.sources.web_pages import read_page  # noqa: PLC0415  # a second to import, where needed

        page = read_page(decode(content, declared_charset(content)))
        return _Parsed(page.text, page.title, page.published_at, page.url)
    text = decode(content)
    if form is Format.RST:
        return _Parsed(to_markdown(text))
    if form is Format.MARKDOWN:
        matter = front_matter.split(text)
        return _Parsed(matter.text, matter.title, matter.published_at)
    return _Parsed(text)


def _title(text: str | None) -> str | None:
    """On one line, not too long, and storable: front matter may spell half a character."""
    return " ".join(_SURROGATE.sub("\ufffd", text).split())[:MAX_TITLE_CHARACTERS] if text else None
