"""What a sentence entails, in other words: light paraphrases made by rules, each of which keeps it true."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Rewrite = Callable[[str, random.Random], str]

_SYNONYMS = {
    "also ": "", "began": "started", "situated": "located", "approximately": "about", "purchased": "bought",
    "film": "movie", "in order to": "to", "numerous": "many", "due to": "because of", "initially": "at first",
    "constructed": "built", "died": "passed away", "concluded": "ended", "attempted": "tried", "nation": "country",
    "obtain": "get", "required": "needed", "frequently": "often", "commonly": "often", "children": "kids",
    "primarily": "mainly", "large": "big", "nearly": "almost", "whole": "entire", "begins": "starts",
    "assist": "help", "utilized": "used", "resides": "lives", "resided": "lived", "author": "writer",
    "physician": "doctor", "automobile": "car", "vessel": "ship", "residents": "inhabitants", "roughly": "about",
    "prior to": "before", "subsequently": "later", "worldwide": "around the world", "permitted": "allowed",
    "located in": "found in", "is able to": "can", "was able to": "could", "such as": "like", "known as": "called",
    "part of": "belonging to", "consists of": "is made up of", "because": "since", "therefore": "so",
}  # fmt: skip
_ACTIVE = {
    "written": "wrote", "directed": "directed", "built": "built", "founded": "founded", "designed": "designed",
    "composed": "composed", "published": "published", "produced": "produced", "discovered": "discovered",
    "invented": "invented", "developed": "developed", "created": "created", "painted": "painted", "owned": "owned",
    "established": "established", "led": "led", "won": "won", "defeated": "defeated", "killed": "killed",
    "introduced": "introduced", "recorded": "recorded", "released": "released", "acquired": "acquired",
    "sold": "sold", "taught": "taught", "replaced": "replaced", "succeeded": "succeeded", "edited": "edited",
    "hosted": "hosted", "played": "played", "translated": "translated", "supported": "supported",
}  # fmt: skip
_PASSIVE = re.compile(
    rf"^(?P<object>(?:The |An? )?[A-Z][^,;()]{{2,60}}?) (?:was|were) (?P<verb>{'|'.join(_ACTIVE)})"
    r" by (?P<agent>(?:the )?[A-Z][\w.'-]*(?: (?:of |de |von )?[A-Z][\w.'-]*){0,3})(?P<rest>(?: in \d{4}[^,;]*)?\.)$"
)
_LEADING = re.compile(
    r"^(?:In|On|During|After|Since|At|From|Throughout|Around|Early in|Late in|By) [^,;()]{3,45}, "
    r"(?=(?:the|he|she|it|they|a|an|his|her|their|its|[A-Z]))"
)
_LINKING = re.compile(r"^(?:However|Moreover|Furthermore|In addition|Additionally|Also|Thus|Therefore|Meanwhile), ")
_TRAILING = re.compile(r", (?:which|who|where|whose|making|becoming|including|leading|allowing|as well as) [^.]*\.$")
_APPOSITIVE = re.compile(r"(?<=[a-z]), (?:a|an|the) [^,;.]{3,60},(?= (?:is|was|were|has|had|are|wrote|became)\b)")
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_LIST = re.compile(r"\b([A-Z][\w'-]+(?: [A-Z][\w'-]+)?), ([A-Z][\w'-]+(?: [A-Z][\w'-]+)?),? and ([A-Z][\w'-]+)\b")
_PRONOUN = re.compile(r"^(?:It|He|She) (?=(?:is|was|has|had|can|became|wrote|won|died|served|played|lived|worked)\b)")
_RESTRICTING = re.compile(r"\b(?:not?|n't|never|only|all|every|each|none|if|unless|except|without|few|most)\b", re.I)
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


def without_brackets(text: str, _: random.Random) -> str:
    return _BRACKETS.sub("", text)


def without_beginning(text: str, _: random.Random) -> str:
    return _capitalised(_LEADING.sub("", _LINKING.sub("", text)))


def without_end(text: str, _: random.Random) -> str:
    return _TRAILING.sub(".", text)


def without_aside(text: str, _: random.Random) -> str:
    return _APPOSITIVE.sub("", text)


def in_synonyms(text: str, rng: random.Random) -> str:
    """One or two of its words said otherwise."""
    found = [word for word in _SYNONYMS if re.search(rf"\b{re.escape(word)}(?![\w])|\b{re.escape(word)}$", text)]
    for word in rng.sample(found, min(len(found), 2)):
        text = re.sub(
            rf"\b{re.escape(word)}(?![a-z])" if word[-1] != " " else rf"\b{word}", _SYNONYMS[word], text, count=1
        )
    return text


def in_another_order(text: str, rng: random.Random) -> str:
    """The names of a list in another order, or two of its three."""

    def other(match: re.Match[str]) -> str:
        names = [match[1], match[2], match[3]]
        rng.shuffle(names)
        return f"{names[0]} and {names[1]}" if rng.random() < 0.3 else f"{names[0]}, {names[1]} and {names[2]}"

    return _LIST.sub(other, text, 1)


def in_active_voice(text: str, _: random.Random) -> str:
    match = _PASSIVE.match(text)
    if match is None:
        return text
    agent = match["agent"][:1].upper() + match["agent"][1:]
    thing = match["object"]
    thing = thing[:1].lower() + thing[1:] if thing.startswith(("The ", "A ", "An ")) else thing
    return f"{agent} {_ACTIVE[match['verb']]} {thing}{match['rest']}"


def in_number_words(text: str, _: random.Random) -> str:
    """Small numbers as words, or the words as numbers."""
    if re.search(r"(?<![\w.,$-])(?:[2-9]|1[0-2])(?= [a-z])", text):
        return re.sub(r"(?<![\w.,$-])(?:[2-9]|1[0-2])(?= [a-z])", lambda match: _WORDS[int(match[0])], text, count=1)
    spelled = "|".join(_WORDS[2:])
    return re.sub(rf"\b(?:{spelled})\b(?= [a-z])", lambda match: str(_WORDS.index(match[0])), text, count=1)


_REWRITES: tuple[Rewrite, ...] = (
    in_active_voice,
    without_brackets,
    without_beginning,
    without_end,
    without_aside,
    in_another_order,
    in_synonyms,
    in_number_words,
)
_CUTS = (without_end, without_aside, without_beginning)


def paraphrase(sentence: str, title: str, rng: random.Random) -> str:
    """A claim that ``sentence``, from a passage with this ``title``, proves. Often the sentence itself."""
    text = sentence
    if title and rng.random() < 0.5:
        text = _PRONOUN.sub(lambda _: f"{title} ", text)
    for rewrite in _REWRITES:
        # What is left out of a sentence that restricts may be its restriction.
        if rng.random() < 0.55 and not (rewrite in _CUTS and _RESTRICTING.search(text)):
            text = rewrite(text, rng)
    text = " ".join(text.split()).replace(" ,", ",").replace(" .", ".")
    return text if len(text.split()) >= 4 else sentence


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
