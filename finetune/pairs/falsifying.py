"""What a passage does not say, though it nearly does: claims made false by changing one thing."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from finetune.pairs import swaps
from serving.answer.guards.names import names
from serving.answer.guards.reading import Reading

_QUANTIFIERS = {
    "some": "all", "many": "all", "most": "all", "several": "all", "often": "always", "usually": "always",
    "sometimes": "always", "few": "many", "at least": "at most", "more than": "less than", "fewer than": "more than",
    "less than": "more than", "up to": "more than", "almost": "more than", "both": "neither of", "first": "second",
    "second": "third", "before": "after", "after": "before", "largest": "smallest", "oldest": "youngest",
    "one of the": "the only one of the", "generally": "always", "partly": "entirely", "all": "no", "every": "no",
    "only": "mainly", "rarely": "often", "never": "often", "always": "never", "highest": "lowest", "north": "south",
    "eastern": "western", "southern": "northern", "increased": "decreased", "rose": "fell", "won": "lost",
    "began": "ended", "older": "younger", "male": "female", "mother": "father", "son": "daughter",
    "brother": "sister", "husband": "wife", "king": "queen", "actor": "director", "American": "British",
    "English": "French", "German": "Italian", "born": "married", "died": "was born", "novel": "play", "city": "village",
    "river": "mountain", "university": "church", "singer": "painter", "book": "film",
}  # fmt: skip
_CONDITION = re.compile(r",? (?:if|unless|provided|as long as|except|in case|but only|so long as|assuming) [^.]*\.$")
_MODAL = re.compile(r"\b(?:may|might|could) (?:be|have been)\b|\b(?:reportedly|allegedly|possibly|probably|perhaps) ")
_ATTRIBUTED = re.compile(
    r"^.{4,60}? (?:claimed|argued|believed|suggested|alleged|thought|hoped|proposed|speculated|denied) that (?=\w)"
)
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*\d|(?<![\w.,])\d(?![\w.,])")

Change = Callable[[str, str, Sequence[str], random.Random], list[str]]


def _swapped(claim: str, _evidence: str, _strangers: Sequence[str], _rng: random.Random) -> list[str]:
    return [*swaps.swapped_numbers(claim), *swaps.swapped_dates(claim), *swaps.swapped_units(claim)]


def _number_from_evidence(claim: str, evidence: str, _strangers: Sequence[str], rng: random.Random) -> list[str]:
    own = set(_NUMBER.findall(claim))
    others = [number for number in _NUMBER.findall(evidence) if number not in own]
    found = []
    for match in _NUMBER.finditer(claim):
        alike = [number for number in others if len(number) == len(match[0])] or others
        if alike:
            found.append(claim[: match.start()] + rng.choice(alike) + claim[match.end() :])
    return found


def _name_from_evidence(claim: str, evidence: str, strangers: Sequence[str], rng: random.Random) -> list[str]:
    """A name of the claim made another one of the passage, or where it has none a stranger's."""
    read = Reading(claim)
    own = [claim[name[0].start : name[-1].end] for name in names(read.tokens)]
    others = [text for text in _names(evidence) if not any(text in name or name in text for name in own)]
    if not others:
        others = list(rng.sample(strangers, min(2, len(strangers))))
    return [re.sub(rf"\b{re.escape(name)}\b", lambda _: rng.choice(others), claim, count=1) for name in own if others]


def _roles(claim: str, _evidence: str, _strangers: Sequence[str], rng: random.Random) -> list[str]:
    own = _names(claim)
    found = list(swaps.swapped_roles(claim))
    if len(own) >= 2:
        one, two = rng.sample(own, 2)
        if one not in two and two not in one:
            found.append(claim.replace(one, "\0").replace(two, one).replace("\0", two))
    return found


def _polarity(claim: str, _evidence: str, _strangers: Sequence[str], _rng: random.Random) -> list[str]:
    return [*swaps.negated(claim), *swaps.unnegated(claim)]


def _opposites(claim: str, _evidence: str, _strangers: Sequence[str], _rng: random.Random) -> list[str]:
    return list(swaps.swapped_opposites(claim))


def _quantifiers(claim: str, _evidence: str, _strangers: Sequence[str], rng: random.Random) -> list[str]:
    held = [word for word in _QUANTIFIERS if re.search(rf"\b{word}\b", claim)]
    return [re.sub(rf"\b{word}\b", _QUANTIFIERS[word], claim, count=1) for word in rng.sample(held, min(2, len(held)))]


def _unconditional(claim: str, _evidence: str, _strangers: Sequence[str], _rng: random.Random) -> list[str]:
    """A condition, a doubt or a speaker taken away: what is left is said as a fact."""
    found = [_CONDITION.sub(".", claim), _ATTRIBUTED.sub("", claim)]
    found.append(_MODAL.sub(lambda match: "is" if " " in match[0].strip() else "", claim, count=1))
    return [text[:1].upper() + text[1:] for text in found if len(text.split()) >= 4]


CHANGES: dict[str, tuple[Change, float]] = {
    "value": (_swapped, 1.0),
    "other value": (_number_from_evidence, 1.5),
    "name": (_name_from_evidence, 1.5),
    "roles": (_roles, 1.0),
    "polarity": (_polarity, 0.8),
    "opposite": (_opposites, 1.0),
    "quantifier": (_quantifiers, 1.2),
    "condition": (_unconditional, 3.0),
}
"""Each way to make a claim false, and how readily it is chosen where it can be."""


def falsified(
    claim: str, evidence: str, strangers: Sequence[str], rng: random.Random, count: int = 1
) -> list[tuple[str, str]]:
    """Up to ``count`` claims that ``evidence`` no longer proves, each changed in another way, with the way's name."""
    found: list[tuple[float, str, str]] = []
    for kind, (change, weight) in CHANGES.items():
        made = [text for text in change(claim, evidence, strangers, rng) if text != claim and text not in evidence]
        if made:
            found.append((rng.random() ** (1 / weight), kind, rng.choice(made)))
    return [(text, kind) for _, kind, text in sorted(found, reverse=True)[:count]]


def _names(text: str) -> list[str]:
    read = Reading(text)
    found = [read.text[name[0].start : name[-1].end] for name in names(read.tokens)]
    return list(dict.fromkeys(found))
