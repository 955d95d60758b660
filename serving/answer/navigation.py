"""Whether a query asks for a place on the web and not for knowledge: an address, or a site by name.

A bare name is navigational only when it is known as a site: ``photosynthesis`` and ``python list comprehension`` look
just like ``hacker news``. Being wrong one way costs a model run; the other way it costs the answer.
"""

from __future__ import annotations

import re

from serving.answer import sites
from serving.answer.reading import Reading

# Longer queries say more than where to go.
_MOST_WORDS = 6
_MOST_CHARACTERS = 2048
_LONGEST_CUE = 80

_HOST = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+([^\W\d_]{2,24})(?::\d{1,5})?(?:[/?#]\S*)?")
_WWW = re.compile(r"ww?w[., ] ?")
_SCHEME = re.compile(r"(?:https?|ftp)://\S+")


def navigational(reading: Reading) -> str | None:
    """The cue that makes it navigational, such as ``domain: "github.com"``, or None. Never for a question."""
    if reading.asks or len(reading.text) > _MOST_CHARACTERS or len(reading.words) > _MOST_WORDS:
        return None
    text = reading.text.casefold().rstrip(".,;!")
    for rule in (_address, _known_name, _going_there, _part_of_a_site):
        found = rule(text)
        if found:
            kind, words = found
            return f'{kind}: "{words[:_LONGEST_CUE]}"'
    return None


def _address(text: str) -> tuple[str, str] | None:
    if _SCHEME.fullmatch(text):
        return "url", text
    host = _host(text)
    return ("domain", host) if host else None


def _known_name(text: str) -> tuple[str, str] | None:
    return ("site name", text) if text in sites.SITE_NAMES else None


def _going_there(text: str) -> tuple[str, str] | None:
    for words in sites.GO_TO:
        if text.startswith(f"{words} ") and _may_be_site(text[len(words) + 1 :]):
            return "going to a site", words
    for words in sites.OPEN:
        if text.startswith(f"{words} ") and _is_site(text[len(words) + 1 :]):
            return "going to a site", words
    return None


def _part_of_a_site(text: str) -> tuple[str, str] | None:
    for words in sites.SITE_WORDS:
        if text.endswith(f" {words}") and _may_be_site(text[: -len(words) - 1]):
            return "part of a site", words
    for words in sites.WORDS_AFTER_A_SITE:
        if text.endswith(f" {words}") and _is_site(text[: -len(words) - 1]):
            return "part of a site", words
    return None


def _is_site(text: str) -> bool:
    return text in sites.SITE_NAMES or _host(text) is not None


def _may_be_site(text: str) -> bool:
    """A site, or up to four words of which none makes it a topic."""
    words = text.split()
    return _is_site(text) or (0 < len(words) <= 4 and sites.INFORMATIONAL.isdisjoint(words))


def _host(text: str) -> str | None:
    """The host (with a path, if it has one) that the whole of ``text`` is, or None.

    Forgives ``github .com``, ``www github com`` and ``ww.github.com``. After ``www`` any ending will do.
    """
    www = _WWW.match(text)
    if www:
        joined = re.sub("[ ,]+", ".", text[www.end() :])
    else:
        joined = re.sub(r" ?\. ?", ".", text) if text.count(".") == 1 else text
    match = _HOST.fullmatch(joined)
    if match is None:
        return None
    return joined if www or _has_the_look_of_a_site(joined, ending=match[1]) else None


def _has_the_look_of_a_site(host: str, *, ending: str) -> bool:
    if ending in sites.GENERIC_ENDINGS:
        return host not in sites.FRAMEWORKS
    head = host.partition(".")[0]
    return ending in sites.ENDINGS and head not in sites.CODE_HEADS and not head.isdigit()
