"""From text to the words that are indexed and searched: prose by word, identifiers whole and by parts.

Both sides of the index use the same function, so a query is never parsed as a language: it has no syntax to get wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# A word, or words joined by dots or hyphens with nothing between: `os.path.join`, `scikit-learn`, `3.11`, `__init__`.
# Chinese, Japanese and Korean are written without spaces: each of their characters is a word of its own.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003134f"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:[.\-][^\W{_UNSPACED}]+)*")
_PART = re.compile(r"[.\-_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

STOP_WORDS = frozenset(
    """
    a about all also am an and any are as at be been being between both but by can could did do does doing done for from
    get had has have having he her here him his how i if in into is it its itself just let may me might more most must
    my no nor not of off on once one only or other our out over own please same shall she should so some such tell than
    that the their them then there these they this those through to too under until up us use used using very was we
    were what when where which while who whom whose why will with would you your
    """.split()
)


def words(text: str) -> Iterator[str]:
    """The words of ``text`` in order, in their own case.

    A compound comes whole and then by its parts: ``itertools.chain`` gives itself, ``itertools`` and ``chain``;
    ``snake_case``, ``CamelCase`` and ``__init__`` likewise. Lone surrogates are replaced, so every word encodes.
    """
    clean = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode())
    for match in _TOKEN.finditer(clean):
        token = match.group()
        parts = [part for part in _PART.split(token) if part]
        if parts != [token]:
            yield token
        # A number's digits mean nothing apart: 3.11 is not about 3.
        if not token.replace(".", "").isdigit():
            yield from parts


def query_words(text: str) -> list[str]:
    """The words of a query worth searching: without stop words, unless it has no others."""
    found = list(words(text))
    content = [word for word in found if word.lower() not in STOP_WORDS]
    return content or found
