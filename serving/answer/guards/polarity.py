"""Polarity: a claim that negates needs evidence that does, and the reverse; nor may it say a word's opposite.

Judged against the sentences that match the claim best: a "not" elsewhere in a passage is about something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serving.answer.guards.negation import affirmed, implies, is_negation, negated, root, undoes
from serving.answer.guards.opposites import ALIKE, INVERTIBLE, POLAR
from serving.answer.guards.reading import Reading, Sentence, Token, closest
from serving.answer.guards.rejection import Rejection
from serving.answer.text import stem
from serving.answer.types import Reason

NEAR = 0.5
LEAST = 0.3
WHOLE = 0.7


def polarity_guard(claim: Reading, evidence: Reading) -> Rejection | None:
    """Rejects a claim that negates what the evidence says, says what it negates, or says its opposite."""
    for sentence in claim.sentences:
        rejection = _negation_added(sentence, evidence) or _negation_lost(sentence, evidence)
        if rejection:
            return rejection
        opposed = opposite(sentence, evidence, POLAR)
        if opposed:
            return Rejection(Reason.POLARITY_MISMATCH, opposed)
    return None


def _negation_added(claim: Sentence, evidence: Reading) -> Rejection | None:
    """The claim negates what the evidence says plainly."""
    for cue, scope in negated(claim.tokens):
        if cue.folded == "without" or not scope or _hypothetical(claim.tokens, cue):
            continue
        near = closest(_meaning(claim), evidence, least=LEAST) or evidence.sentences
        if undoes(scope[0]):
            if not _undone(scope[0], evidence) and any(map(_negates, near)):
                return Rejection(Reason.NEGATION_MISMATCH, (f"{cue.text} {scope[0].text}",))
            continue
        said = {root(token) for sentence in near for token in sentence.content}
        elsewhere = not {root(token.stem) for token in scope} & said and all(map(_negates, near))
        if elsewhere or _denies(evidence, near, scope):
            continue
        return Rejection(Reason.NEGATION_MISMATCH, (" ".join(token.text for token in (cue, *scope)),))
    return None


def _denies(evidence: Reading, near: Sequence[Sentence], scope: Sequence[Token]) -> bool:
    """Whether the evidence negates one of the words too, in any way: ``not open``, ``closed``, ``unopened``."""
    opposed = {stem(other) for other in POLAR.get(scope[0].folded, ())}
    stems = {token.stem for token in scope}
    if any(
        one.stem in stems and two.folded == "free"
        for one, two in zip(evidence.tokens, evidence.tokens[2:], strict=False)
    ):
        return True  # risk-free
    # A word of the claim's that negates by itself, such as ``cancelled``, is what the claim denies, not what denies it.
    if any(
        opposed & sentence.stems or any(t.stem not in stems and implies(t, stems) for t in sentence.tokens)
        for sentence in near
    ):
        return True
    roots = _heads(scope, near)
    return any(
        roots & {root(token.stem) for token in words[:2]}
        for sentence in evidence.sentences
        for _, words in negated(sentence.tokens)
    )


def _heads(scope: Sequence[Token], near: Sequence[Sentence]) -> set[str]:
    """The roots of what a negation denies: its first words, or the first alone where the evidence says that plainly."""
    words = [token for token in scope if not token.folded.endswith("ly")] or list(scope)
    first = root(words[0].stem)
    plain = any(first in map(root, affirmed(sentence)) for sentence in near)
    return {first} if plain else {first, *(root(token.stem) for token in words[1:2])}


def _undone(token: Token, evidence: Reading) -> bool:
    """Whether the evidence negates the negative word too."""
    return any(
        token.stem in {word.stem for word in words} for s in evidence.sentences for _, words in negated(s.tokens)
    )


def _negates(sentence: Sentence) -> bool:
    return any(is_negation(token) or implies(token) for token in sentence.tokens)


def _hypothetical(tokens: Sequence[Token], cue: Token) -> bool:
    return any(token.folded in ("if", "unless", "whether") for token in tokens if token.start < cue.start)


def _negation_lost(claim: Sentence, evidence: Reading) -> Rejection | None:
    """The evidence negates a word that the claim says plainly."""
    if any(is_negation(token) or implies(token) for token in claim.tokens):
        return None
    near = closest(_meaning(claim), evidence, least=NEAR)
    said = {root(token.stem): token for token in claim.tokens if token.is_content}
    for sentence in near:
        plain = [root(token.stem) for token in sentence.tokens]
        for cue, scope in negated(sentence.tokens):
            roots = [root(token.stem) for token in scope]
            known = [root for root in roots if root in said]
            whole = sum(root in plain for root in said) >= WHOLE * len(said)
            if not known or not (whole or len(known) * 2 > len(roots)) or plain.count(known[0]) > 1:
                continue
            return Rejection(Reason.NEGATION_MISMATCH, (said[known[0]].text, f"{cue.text} {scope[0].text}"))
    return None


def _meaning(sentence: Sentence) -> frozenset[str]:
    """The content stems of a sentence but for what negates in it."""
    return frozenset(token.stem for token in sentence.tokens if token.is_content and not is_negation(token))


def opposite(
    claim: Sentence, evidence: Reading, opposites: Mapping[str, frozenset[str]], *, least: float = NEAR
) -> tuple[str, str] | None:
    """A word of the claim and its opposite in every sentence that matches best, with nothing there to say the same.

    Abstains where either side negates, or where the arguments of a word that can be turned round are turned round.
    """
    words = [token for token in claim.tokens if token.folded in opposites]
    if not words or any(is_negation(token) for token in claim.tokens):
        return None
    for token in words:
        near = closest(_meaning(claim) - {token.stem}, evidence, least=least)
        against = [_against(token, claim, sentence, opposites) for sentence in near]
        first = next((found for found in against if found), None)
        if first and all(against):
            return token.text, first
    return None


def _against(token: Token, claim: Sentence, sentence: Sentence, opposites: Mapping[str, frozenset[str]]) -> str | None:
    alike = {stem(other) for other in ALIKE.get(token.folded, ())} | {token.stem}
    if alike & sentence.stems or any(is_negation(other) for other in sentence.tokens):
        return None
    found = next((other for other in sentence.tokens if other.folded in opposites[token.folded]), None)
    if found is None or found.stem in claim.stems:
        return None
    if token.folded in INVERTIBLE and _turned_round(claim.tokens, token, sentence.tokens, found):
        return None
    return found.text


def _turned_round(claim: Sequence[Token], word: Token, evidence: Sequence[Token], opposed: Token) -> bool:
    """Whether a content word before ``word`` in the claim stands after its opposite in the evidence, or the reverse."""
    before = {token.stem for token in claim if token.is_content and token.start < word.start}
    after = {token.stem for token in claim if token.is_content and token.start > word.start}
    ahead = {token.stem for token in evidence if token.is_content and token.start < opposed.start}
    behind = {token.stem for token in evidence if token.is_content and token.start > opposed.start}
    return bool((before & behind) - ahead or (after & ahead) - behind)
