"""Words as the reference judges see them: content words, numbers, identifiers. Lexical, language-light, linear."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?![\w])")
# What only code looks like: dotted or snake_case names, calls, CamelCase, words with digits inside, inline code.
_IDENTIFIER = re.compile(
    r"`[^`\n]{1,80}`"
    r"|[A-Za-z_]\w*(?:\.\w+)+"
    r"|\b[A-Za-z]\w*_\w+|\b_+\w+|\b[a-z]+[A-Z]\w*|\b(?:[A-Z][a-z0-9]+){2,}\b"
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w+\b"
)

# Function words of English: they say how a sentence is built, not what it is about.
_FUNCTION_WORDS = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each either few for
from further get gets had hadn't has hasn't have haven't having he her here hers him his how however i if in into is
isn't it it's its itself just let's me more most must my no nor not of off on once only or other our ours out over
own per same shall she should so some such than that that's the their them then there these they this those through
to too under until up upon us use used uses using very was wasn't we were what what's when where which while who
who's whom whose why will with within without won't would you your yours
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


def normalise(text: str) -> str:
    """NFKC and case-folded: what two spellings of one word have in common."""
    return unicodedata.normalize("NFKC", text).casefold()


def stem(word: str) -> str:
    """Folds the plural and verb endings of English; crude on purpose, the same for claim and passage."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending, least in (("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            return word[: -len(ending)].rstrip("ei") or word
    return word.rstrip("e") if len(word) > 3 else word


def stemmed_words(text: str) -> list[tuple[str, str]]:
    """The words that carry meaning, normalised, each with its stem, in order, with repeats."""
    return [(word, stem(word)) for word in _WORD.findall(normalise(text)) if word not in STOP_WORDS]


def content_words(text: str) -> list[str]:
    """The stems of the words that carry meaning, in order, with repeats."""
    return [stemmed for _, stemmed in stemmed_words(text)]


def numbers(text: str) -> set[str]:
    """The numbers written in digits, thousands separators taken out: ``{"1954", "3.14"}``."""
    return {_plain(number) for number in _NUMBER.findall(unicodedata.normalize("NFKC", text))}


def _plain(number: str) -> str:
    whole = re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", number)
    return (number.replace(",", "") if whole else number).lstrip("+")


def identifiers(text: str) -> set[str]:
    """The names that only code has, case kept: ``{"itertools.chain", "__next__"}``."""
    return {found.strip("`").rstrip("()") for found in _IDENTIFIER.findall(text)} - {""}
