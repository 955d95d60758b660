"""Decode grammars: regular expressions that a whole reply matches, so that nothing else can be written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from serving.answer.sentences import TERMINATORS, terminator_start

# It begins as no sentence does, so that a model under a grammar never drifts into it from a common first word.
DECLINE_LINE = "~NO_ANSWER: the passages do not answer this question."


def with_marker(sentence: str, number: int) -> str:
    """A sentence with its marker before the terminator: ``It ends [3].``"""
    at = terminator_start(sentence)
    return f"{sentence[:at]} [{number}]{sentence[at:]}"


_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}/-]")


def _literal(text: str) -> str:
    return _SPECIAL.sub(lambda match: "\\" + match[0], text)


DECLINE_GRAMMAR = _literal(DECLINE_LINE)


# What no sentence may hold: what could end it before its marker (terminators of all scripts, line breaks and other
# control characters), what could be read as another marker (brackets of all widths), and the private use characters
# that go with citation spans. As a class of a regular expression.
_ESCAPING = rf"\x00-\x1f\x7f-\x9f\u2028\u2029\u0085\[\]【】［］{TERMINATORS}\ue200-\ue206"


def marker_grammar(passages: int, sentences: int) -> str:
    """A regular expression for up to ``sentences`` sentences that each cite a passage 1…``passages``, or the decline.

    The marker comes after the full stop, where a model is ready to end a sentence: ``It ends. [1]``. Inside a sentence
    no bracket, terminator or line break can be written, so none escapes its marker and no other can be made; a full
    stop can, when a letter or digit follows it (``itertools.chain``, ``3.14``, ``x.__len__``). Nothing in it depends on
    what the passages say: the expression of a size is one string, which an engine compiles once.
    """
    numbers = "|".join(str(number) for number in range(passages, 0, -1))
    start = rf"(?:[A-Z\"']|`[^`{_ESCAPING}])"  # three backticks would open a block of code
    sentence = rf"{start}(?:[^{_ESCAPING}]|\._{{0,2}}[A-Za-z0-9])*\. \[(?:{numbers})\]"
    return rf"(?:{DECLINE_GRAMMAR}|{sentence}(?: {sentence}){{0,{sentences - 1}}})"


def quote_grammar(quotes: Sequence[tuple[int, str]], sentences: int) -> str:
    """A regular expression for one to ``sentences`` of the given ones, each with its passage's marker, or the decline.

    ``quotes`` are pairs of a passage's number (from 1) and one of its sentences, best first. A reply begins with the
    best one; the model chooses whether that answers, and which to add, in order and none twice. It cannot reword. The
    expression grows with the number of quotes to the power of ``sentences`` - 1: both are small.
    """
    if not quotes:
        return DECLINE_GRAMMAR
    first, *others = [_literal(with_marker(sentence, number)) for number, sentence in quotes]
    following = _subsequences(others, sentences - 1)
    return f"{DECLINE_GRAMMAR}|{first}" + (f"(?: (?:{'|'.join(following)}))?" if following else "")


def _subsequences(written: Sequence[str], most: int) -> list[str]:
    """Alternatives for one to ``most`` of the given expressions, in order, joined by spaces."""
    if most < 1:
        return []
    alternatives = []
    for at, one in enumerate(written):
        following = _subsequences(written[at + 1 :], most - 1)
        alternatives.append(one + (f"(?: (?:{'|'.join(following)}))?" if following else ""))
    return alternatives
