"""URLs in claims: whatever a reader's client could make a link of has to stand, whole, in a passage that is cited.

A model's reply is no source of addresses. A made-up link target, a host that only looks like the real one, a query that
carries the question away: each differs from every address that the cited passages hold, and that is all that is asked.
Addresses are compared as wholes, so ``https://a.example`` does not cover ``https://a.example.evil.example``.

Linear in the texts. Word lists and schemes are of what clients make links of: RFC 3986 for the syntax, CommonMark §6.3
and §6.5 for link targets and autolinks, the WHATWG URL standard for slashes and blanks that browsers overlook.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence

from serving.answer.lookalikes import VISIBLE
from serving.answer.types import Passage

# Endings by which clients tell a bare host. The second lot are words of code and of English too (``asyncio.run``,
# ``setup.py``): a name with one of them is an address where a path or a port follows.
_ENDINGS = """
ai app art biz blog br ca ch club cn co com cz de dev dk edu es eu fr gov gr hu ie il io ir jp kr mil mobi museum nl nz
onion online org pl pro pt ro ru shop sk tech tokyo tv tw ua uk us vip web website wiki xyz net
"""
_ENDINGS_WITH_PATH = """
academy agency at be cc center click cloud code community company computer design digital docs download email example
expert fi finance fun fyi games gg global group guru help host hosting id in info ink int invalid is it la life link
live local localhost ltd md me media ml name network news no page party photo press pub py report review rs run sale
science security services sh site so social software solutions space st store stream studio support systems team
technology test tips to today tools top town trade travel us video win work works world ws zip zone
"""
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_HOST = rf"(?:{_LABEL}\.){{1,8}}"
_ENDING = rf"(?:{'|'.join(_ENDINGS.split())}|xn--[\w-]{{1,59}})"
_ENDING_WITH_PATH = rf"(?:{'|'.join(_ENDINGS_WITH_PATH.split())})"
_REST = r"[^\s<>\"`|{}]*"
_SCHEMES = "about|blob|chrome|data|file|ftp|intent|javascript|magnet|mailto|sms|tel|vbscript|view-source"
_URL = re.compile(
    rf"(?<![^\W_])[a-z][a-z0-9+.-]{{1,30}}:[/\\]{{1,8}}{_REST}"  # with an authority; browsers take \ for /
    rf"|(?<![^\W_])https?:(?=[^\s/\\]){_REST}"
    rf"|(?<![\w-])(?:{_SCHEMES}):(?=\S){_REST}"
    rf"|(?<![\w:/\\])[/\\]{{2}}{_HOST}{_LABEL}{_REST}"  # relative to the page's scheme
    rf"|(?<![\w.@+-])[\w.+-]{{1,64}}@{_HOST}{_LABEL}"  # an address for mail, or user information in front of a host
    rf"|(?<![\w.@-]){_HOST}{_ENDING}(?![\w-]|\.[^\W_])(?:[:/?#\\]{_REST})?"
    rf"|(?<![\w.@-]){_HOST}{_ENDING_WITH_PATH}(?::\d|/[^\W_]){_REST}"
    rf"|(?<![\w.@-])(?:\d{{1,3}}\.){{3}}\d{{1,3}}[:/]{_REST}",
    re.IGNORECASE,
)
_BLANKS_IN_SCHEME = re.compile(r"\b(" + r"\s*".join("javascript") + "|" + r"\s*".join("vbscript") + r")\s*:\s*", re.I)
_TARGETS = (
    re.compile(r"\]\(\s*<([^<>\n]*)>"),
    re.compile(r"\]\(\s*([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*){0,8})"),
    re.compile(r"^[ ]{0,3}\[[^\[\]\n]{1,200}\]:[ \t]*<?([^\s<>]+)", re.MULTILINE),
    re.compile(r"\b(?:href|src|srcset|action|poster|background|data|cite)\s*=\s*[\"']?([^\s\"'>]+)", re.I),
)
_IDEOGRAPHIC_DOT = re.compile(r"(?<=[^\W_])[。｡．](?=[^\W_])")
_AFTER = ".,;:!?'\"*_~)]}’”»>"
_SCHEME_AND_SLASHES = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?[/\\]*", re.I)
_UP_TO_PATH = re.compile(rf"{_SCHEME_AND_SLASHES.pattern}[^/\\?#]*", re.I)


def foreign_urls(claim_text: str, passages: Sequence[Passage]) -> list[str]:
    """The addresses in ``claim_text`` that no text, title, heading or URL of ``passages`` holds, in order, once each.

    ``passages`` are the ones that the claim cites. A bare host may be the host of a longer address that they hold; all
    else has to be the same, but for the case of scheme and host, a slash at the end and punctuation after it. Accepts
    any string.
    """
    found = dict.fromkeys(_addresses(claim_text))
    if not found:
        return []
    held = {address for passage in passages for address in _held(passage)}
    hosts = {_host(address) for address in held}
    return [address for address in found if address not in held and address not in hosts]


def _held(passage: Passage) -> Iterator[str]:
    if passage.url:
        yield _trimmed(_plain(passage.url))
    for text in (passage.text, passage.title, *passage.heading_path):
        yield from _addresses(text)


def _addresses(text: str) -> Iterator[str]:
    """Yields what a client could make a link of, trimmed."""
    text = _plain(text)
    for match in _URL.finditer(text):
        yield _trimmed(match[0])
    for target in _TARGETS:
        for match in target.finditer(text):
            if match[1]:
                yield _trimmed(match[1])


def _plain(text: str) -> str:
    """The text as a browser reads it: entities resolved, unseen characters gone, compatibility forms folded."""
    text = unicodedata.normalize("NFKC", _IDEOGRAPHIC_DOT.sub(".", html.unescape(text)).translate(VISIBLE))
    return _BLANKS_IN_SCHEME.sub(lambda match: "".join(match[1].split()) + ":", text)


def _trimmed(address: str) -> str:
    """Without the punctuation after it, scheme and host in small letters. A bracket opened in it stays closed."""
    end = len(address)
    unopened = address.count(")") - address.count("(")
    while end and address[end - 1] in _AFTER:
        if address[end - 1] == ")":
            if unopened <= 0:
                break
            unopened -= 1
        end -= 1
    return _UP_TO_PATH.sub(lambda start: start[0].lower(), address[:end].rstrip("/\\"), count=1)


def _host(address: str) -> str:
    rest = _SCHEME_AND_SLASHES.sub("", address, count=1)
    return re.split(r"[/\\?#]", rest, maxsplit=1)[0]
