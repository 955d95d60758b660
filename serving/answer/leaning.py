"""Leaning claims: sentences that mean something only after the one before them.

``It was built there.`` proves nothing by itself: of what? Such a claim is verified with the sentences it leans on read
before it, and is lost with them. English; in other languages every sentence stands alone, and must be proven alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from serving.answer.statements import Statement

_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[,;:]")
_ANAPHORS = frozenset(
    "it its they them their he him his she her this that these those such both former latter there here".split()
)
_SUBJECTS = frozenset("it they he she this these".split())
_OPENINGS = frozenset(
    "and or but so yet also thus hence then however therefore moreover furthermore additionally meanwhile otherwise "
    "instead consequently similarly likewise nevertheless accordingly afterwards later still".split()
)
_PREPOSITIONS = frozenset(
    "in on at by of from with for to during after before since until through throughout under over near inside within "
    "between among against without as because although if unless while when where which who whose".split()
)
_VERBS = frozenset(
    "is are was were be been being am has have had do does did can could will would shall should may might must".split()
)
_NOT_REFERRING = (
    re.compile(r"it (?:is|was) (?:\w+ ){1,3}(?:that|to|whether)\b"),
    re.compile(r"there (?:is|are|was|were|has|have|exists?|can|may|will)\b"),
    re.compile(r"(?:those|they|he|she) who\b"),
    re.compile(r"(?:here|such) (?:is|are|as)\b"),
    re.compile(r"both (?!\w+ed\b)[\w ]+ and\b"),
)
LONGEST_CHAIN = 1000
_LONGEST_FRAGMENT = 8
_LEAD = 8


def leans(sentence: str) -> bool:
    """Whether a sentence hinges on the one before: it begins with an anaphor, or has no subject of its own."""
    words = [word.casefold() for word in _WORDS.findall(sentence[:400])]
    while words and (words[0] in _OPENINGS or words[0] in ",;:"):
        words = words[1:]
    if not words:
        return False
    if words[0] in _ANAPHORS:
        text = " ".join(words[:12])
        return not any(pattern.match(text) for pattern in _NOT_REFERRING)
    if words[:1] == ["the"] and words[1:2] in (["former"], ["latter"], ["same"]):
        return True
    if words[0] not in _PREPOSITIONS:
        return False
    if any(word in _SUBJECTS for word in words[1:_LEAD]):  # "In 1889 it was built", "After that, they left"
        return True
    finite = any(word in _VERBS or (len(word) > 4 and word.endswith("ed")) for word in words)
    return len(words) <= _LONGEST_FRAGMENT and not finite and "," not in words


def in_context(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, each leaning claim with what it leans on as :attr:`Claim.context`.

    The context of a claim is its statement's own (a table row's header), or the sentence before it in its block, after
    that one's own context where it leans too and the whole is no longer than :data:`LONGEST_CHAIN` characters. The
    first sentence of a block leans on nothing.
    """
    found: list[Statement] = []
    for statement in statements:
        context = statement.context
        before = found[-1] if found else None
        if before is not None and before.block == statement.block and leans(statement.claim.text):
            chain = f"{before.claim.context} {before.claim.text}".strip()
            context = chain if len(chain) <= LONGEST_CHAIN else before.claim.text
        found.append(replace(statement, claim=replace(statement.claim, context=context)) if context else statement)
    return found


def lost(statement: Statement, before: Statement | None) -> bool:
    """Whether a claim has lost what it leans on, ``before`` being the last statement kept ahead of it."""
    context = statement.claim.context
    if not context or context == statement.context:
        return False
    return before is None or before.block != statement.block or not context.endswith(before.claim.text)
