"""Polarity: a claim that negates needs evidence that does, and the reverse; nor may it say a word's opposite.

Judged against the sentences that match the claim best: a "not" elsewhere in a passage is about something else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from serving.answer.guards.opposites import ALIKE, IMPLICIT, INVERTIBLE, NEGATIONS, NEGATIVE_PREFIXES, POLAR
from serving.answer.guards.reading import Kind, Reading, Sentence, Token, closest
from serving.answer.guards.rejection import Rejection
from serving.answer.text import stem
from serving.answer.types import Reason

NEAR = 0.5
LEAST = 0.3
WHOLE = 0.7
_SCOPE = 3
_ROOT = 5
_CLAUSE_ENDS = frozenset(", ; : ( ) — – but although though because while which who that whereas if when".split())
_IDIOMS = frozenset(
    (
        ("not", "only"),
        ("no", "doubt"),
        ("not", "just"),
        ("not", "merely"),
        ("not", "necessarily"),
        ("not", "really"),
        ("no", "."),
        ("no", "matter"),
    )
)


def is_negation(token: Token) -> bool:
    return token.folded in NEGATIONS or token.folded.endswith("n't")


def negated(tokens: Sequence[Token]) -> Iterator[tuple[Token, tuple[Token, ...]]]:
    """Each negation with the content words in its scope: the next few in the same clause."""
    for at, token in enumerate(tokens):
        if not is_negation(token):
            continue
        after = tokens[at + 1].folded if at + 1 < len(tokens) else ""
        if (token.folded, after) in _IDIOMS:
            continue
        scope: list[Token] = []
        for other in tokens[at + 1 : at + 1 + 4 * _SCOPE]:
            if (other.folded in _CLAUSE_ENDS and scope) or len(scope) == _SCOPE:
                break
            if other.is_content:
                scope.append(other)
        yield token, tuple(scope)


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
        said = {_root(token) for sentence in near for token in sentence.content}
        elsewhere = not {_root(token.stem) for token in scope} & said and all(map(_negates, near))
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
    roots = {_root(token.stem) for token in scope[:2]}
    if any(opposed & sentence.stems or any(_implies(t, stems) for t in sentence.tokens) for sentence in near):
        return True
    return any(
        roots & {_root(token.stem) for token in words[:2]}
        for sentence in evidence.sentences
        for _, words in negated(sentence.tokens)
    )


def _negates(sentence: Sentence) -> bool:
    return any(is_negation(token) or _implies(token) for token in sentence.tokens)


def _root(stemmed: str) -> str:
    """What ``insured`` and ``insurance`` share."""
    return stemmed[:_ROOT]


def _hypothetical(tokens: Sequence[Token], cue: Token) -> bool:
    return any(token.folded in ("if", "unless", "whether") for token in tokens if token.start < cue.start)


def _negation_lost(claim: Sentence, evidence: Reading) -> Rejection | None:
    """The evidence negates a word that the claim says plainly."""
    if any(is_negation(token) or _implies(token) for token in claim.tokens):
        return None
    near = closest(_meaning(claim), evidence, least=NEAR)
    said = {_root(token.stem): token for token in claim.tokens if token.is_content}
    for sentence in near:
        plain = [_root(token.stem) for token in sentence.tokens]
        for cue, scope in negated(sentence.tokens):
            roots = [_root(token.stem) for token in scope]
            known = [root for root in roots if root in said]
            whole = sum(root in plain for root in said) >= WHOLE * len(said)
            if not known or not (whole or len(known) * 2 > len(roots)) or plain.count(known[0]) > 1:
                continue
            return Rejection(Reason.NEGATION_MISMATCH, (said[known[0]].text, f"{cue.text} {scope[0].text}"))
    return None


def _meaning(sentence: Sentence) -> frozenset[str]:
    """The content stems of a sentence but for what negates in it."""
    return frozenset(token.stem for token in sentence.tokens if token.is_content and not is_negation(token))


def _implies(token: Token, negated_stems: Collection[str] = ()) -> bool:
    """Whether a word negates by itself: by what it means (``lacks``), or by its form one of the stems (``unsafe``)."""
    if token.kind is not Kind.WORD:
        return False
    if token.stem in IMPLICIT:
        return True
    return any(
        token.folded.startswith(prefix) and stem(token.folded[len(prefix) :]) in negated_stems
        for prefix in NEGATIVE_PREFIXES
    ) or (token.folded.endswith("less") and stem(token.folded[:-4]) in negated_stems)


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
