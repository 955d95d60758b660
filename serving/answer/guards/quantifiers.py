"""Quantifiers: a claim about all, most or only some thing needs evidence at least as strong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serving.answer.guards.negation import is_negation
from serving.answer.guards.reading import Reading, Sentence, Token, closest
from serving.answer.guards.rejection import Rejection
from serving.answer.types import Reason

NEAR = 0.5
_STRENGTH = {
    **dict.fromkeys("all every each always everyone everybody everything entire entirely whole wholly".split(), 3),
    **dict.fromkeys("completely totally universally".split(), 3),
    **dict.fromkeys("most mostly majority usually mainly generally typically largely nearly almost".split(), 2),
    **dict.fromkeys("some several certain sometimes occasionally partly partially many often half few".split(), 1),
    **dict.fromkeys("numerous various frequently rarely seldom".split(), 1),
}
_ADVERBS = frozenset(
    "always usually mostly mainly generally typically largely sometimes occasionally often partly partially entirely "
    "wholly completely totally universally frequently rarely seldom".split()
)
_EXCLUSIVE = frozenset(
    "only sole solely just exclusively exclusive alone unique uniquely nothing none nobody no limited restricted "
    "single except lone merely solitary confined last one ever but unless until".split()
)
_REACH = 5


def quantifier_guard(claim: Reading, evidence: Reading) -> Rejection | None:
    """Rejects a claim that says of all or most what the evidence says of fewer, or "only" where it does not."""
    for sentence in claim.sentences:
        near = closest(sentence.content - {"only"}, evidence, least=NEAR)
        if near:
            rejection = _stronger(sentence, near) or _only(sentence, near)
            if rejection:
                return rejection
    return None


def _stronger(claim: Sentence, near: Sequence[Sentence]) -> Rejection | None:
    said = list(_quantified(claim.tokens))
    if not said or any(is_negation(token) for token in claim.tokens):  # "not all" is weaker than "some"
        return None
    told = [one for sentence in near for one in _quantified(sentence.tokens)]
    distinct = {(word.folded, head.stem if head else ""): (word, head) for word, head in said}
    for word, head in distinct.values():
        rivals = [other for other, bound in told if head is None or bound is None or bound.stem == head.stem]
        strength = _STRENGTH[word.folded]
        if strength > 1 and rivals and max(_STRENGTH[other.folded] for other in rivals) < strength:
            return Rejection(Reason.QUANTIFIER_MISMATCH, (word.text, rivals[0].text))
    return None


def _quantified(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token | None]]:
    """Each quantifier with the noun it is of: the next content word, or None for adverbs, which are of the verb."""
    for at, token in enumerate(tokens):
        if token.folded not in _STRENGTH or _superlative(tokens, at):
            continue
        if token.folded in _ADVERBS:
            yield token, None
            continue
        heads = [
            other for other in tokens[at + 1 : at + 1 + _REACH] if other.is_content and other.folded not in _STRENGTH
        ]
        if heads:
            yield token, heads[0]


def _superlative(tokens: Sequence[Token], at: int) -> bool:
    """``the most common`` and ``at most`` are no quantifiers, nor is the first word of ``almost all``."""
    before = tokens[at - 1].folded if at else ""
    after = tokens[at + 1].folded if at + 1 < len(tokens) else ""
    if tokens[at].folded in ("nearly", "almost"):
        return after not in ("all", "every", "always")
    if tokens[at].folded in ("all", "every") and before in ("nearly", "almost"):
        return True
    return before in ("the", "at", "'s", "first", "after", "above", "its", "their", "his", "her", "a", "one") and (
        tokens[at].folded in ("most", "all", "few")
    )


def _only(claim: Sentence, near: Sequence[Sentence]) -> Rejection | None:
    word = next((token for token in claim.tokens if token.folded in ("only", "exclusively", "solely")), None)
    if word is None or any(_EXCLUSIVE & sentence.folded for sentence in near):
        return None
    at = claim.tokens.index(word)
    if at and claim.tokens[at - 1].folded in ("not", "if", "an", "'s"):
        return None
    return Rejection(Reason.QUANTIFIER_MISMATCH, (word.text,))
