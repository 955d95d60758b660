"""The answer for people: Markdown with links, Markdown with footnotes, plain text.

Native markers count chunks, with gaps. These renderings number what they cite 1…k by first appearance, and return the
map back. URLs and titles come from passages alone and are escaped, so that no title can end its link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from serving.answer.grounding import lay_out
from serving.answer.types import Passage, Support

_BREAKS_LINK = re.compile(r"[\\\[\]<>`*_|!#]")
_SPACES = re.compile(r"\s+")
_UNSAFE_IN_URL = re.compile(r"[\s()<>\"'\\`|\[\]]")
_WEB = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rendering:
    """A text and what its numbers mean: ``markers[number]`` is the 0-based chunk cited as ``number`` (from 1)."""

    text: str
    markers: dict[int, int]


def plain(text: str, supports: Sequence[Support], passages: Sequence[Passage]) -> Rendering:
    """``It ends [1].`` and a numbered list of sources after an empty line."""
    return _render(text, supports, passages, lambda number, _: f"[{number}]", _plain_source)


def markdown_links(text: str, supports: Sequence[Support], passages: Sequence[Passage]) -> Rendering:
    """``It ends [[1]](https://…).``; a passage without a web address gets its bare number and a line at the end."""

    def marker(number: int, passage: Passage) -> str:
        url = _url(passage)
        return f"[[{number}]]({url})" if url else f"[{number}]"

    return _render(text, supports, passages, marker, lambda number, p: "" if _url(p) else _plain_source(number, p))


def markdown_footnotes(text: str, supports: Sequence[Support], passages: Sequence[Passage]) -> Rendering:
    """``It ends [^1].`` and ``[^1]: [title](https://…)`` for each source."""

    def source(number: int, passage: Passage) -> str:
        title, url = _escaped(_name(passage)), _url(passage)
        return f"[^{number}]: [{title}]({url})" if url else f"[^{number}]: {title}"

    return _render(text, supports, passages, lambda number, _: f"[^{number}]", source)


def _render(
    text: str,
    supports: Sequence[Support],
    passages: Sequence[Passage],
    marker: Callable[[int, Passage], str],
    source: Callable[[int, Passage], str],
) -> Rendering:
    numbers: dict[int, int] = {}

    def run(chunks: Sequence[int]) -> str:
        mine = sorted(numbers.setdefault(chunk, len(numbers) + 1) for chunk in chunks)
        chunk_of = {number: chunk for chunk, number in numbers.items() if number in mine}
        return " " + "".join(marker(number, passages[chunk_of[number]]) for number in mine)

    body = lay_out(text, supports, run)
    sources = [line for chunk, number in numbers.items() if (line := source(number, passages[chunk]))]
    markers = {number: chunk for chunk, number in numbers.items()}
    return Rendering("\n\n".join([body, "\n".join(sources)]) if sources else body, markers)


def _plain_source(number: int, passage: Passage) -> str:
    return " ".join(part for part in (f"[{number}]", _SPACES.sub(" ", _name(passage)), _url(passage)) if part)


def _name(passage: Passage) -> str:
    return passage.title or passage.source_path or passage.source or passage.id


def _escaped(title: str) -> str:
    return _BREAKS_LINK.sub(lambda found: "\\" + found[0], _SPACES.sub(" ", title).strip())


def _url(passage: Passage) -> str:
    """The passage's web address, fit to stand in a Markdown link; empty when it has none (no other scheme is one)."""
    url = passage.url or ""
    if not _WEB.match(url):
        return ""
    return _UNSAFE_IN_URL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), url)
