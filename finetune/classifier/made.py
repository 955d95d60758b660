"""Queries that code writes: to go somewhere by name, to ask about a name, and the same query said otherwise.

Names come from outside the data: installed packages, and names made up of syllables and common words. Everything is a
function of its names and of the given randomness.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence

ENDINGS = (
    "com com com com org org net io io dev co ai app info me tv edu gov de fr co.uk nl es it pl ca com.br se".split()
)
_PAGES = (
    *("login", "log in", "sign in", "signin", "sign up", "homepage", "home page", "website", "official site"),
    *("official website", "account", "dashboard", "portal", "support page", "customer service", "contact", "app"),
    *("download page", "status page", "site", "support", "webmail", "docs site", "web site", "contact page"),
)
_GO = ("go to", "open", "visit", "take me to", "log in to", "log into", "navigate to", "sign in to", "bring up")
_ASKS = (
    *("what is {0}", "what does {0} do", "how do i install {0}", "how to use {0}", "why is {0} slow", "who made {0}"),
    *("{0} tutorial", "{0} import error", "install {0} on windows", "{0} example code", "when was {0} released"),
    *("how does {0} work?", "is {0} thread safe", "explain {0}", "{0} memory leak", "{0} licence", "{0} changelog"),
    *(
        "how to fix {0} timeout",
        "what is the default port of {0}",
        "{0} configuration options",
        "best {0} alternatives",
    ),
    *("which license does {0} use?", "what version of python does {0} need", "{0} login error fix"),
    *("how do i log in to {0} from a script", "how to open a {0} file", "{0} website not loading why"),
)
_COMPARISONS = (
    *("{0} vs {1}", "{0} versus {1}", "compare {0} and {1}", "difference between {0} and {1}", "compare {0} to {1}"),
    *("what is the difference between {0} and {1}?", "is {0} faster than {1}", "which is better, {0} or {1}?"),
    *("which is older {0} or {1}", "what do {0} and {1} have in common?", "pros and cons of {0} compared with {1}"),
    *("how does {0} differ from {1} and which is easier to deploy?", "do {0} and {1} both support windows?"),
    *("which of {0} and {1} was released first?", "what are {0}, {1} and {2}, and who maintains each of them?"),
    *("for each of {0}, {1} and {2}, when was the first release?", "who founded the company that made {0}?"),
)
_TOPIC_ASKS = (
    *("when was {0} born", "who is {0}?", "what is {0} known for?", "where is {0}", "{0} early life", "{0} cast"),
    *("what year did {0} come out?", "history of {0}", "how did {0} die", "tell me about {0}", "{0} summary"),
    *("how many people took part in {0}?", "what was the name of the first song of {0}?", "{0} population"),
    *("why did {0} leave?", "what happened to {0} in 1968?", "which country is {0} in?", "who wrote {0}?"),
    *("what type of work is {0}?", "what is the name of the company behind {0}?", "in what city is {0}?"),
)
_KINDS = "film band magazine city person university company author album river mountain airline actor writer".split()
_TRAITS = (
    ("older younger larger smaller longer shorter taller higher earlier newer richer more popular|closer to the sea")
    .replace("|", " ")
    .split()
)
_MOSTS = (
    "largest oldest tallest most populous highest-paid longest biggest richest youngest smallest best-selling".split()
)
_THINGS = "countries cities films albums companies rivers universities authors players teams buildings states".split()
_FACTS = ("population", "capital", "founding year", "director", "birthplace", "height", "annual revenue", "mascot")
_NUMBERS = "two three four five six eight ten 3 4 5 7 10".split()
_ROLES = "director author founder composer mayor producer captain wife father coach owner president".split()
_TOPIC_COMPARISONS = (
    *("which {k} was {d} first, {0} or {1}?", "who was born first, {0} or {1}?", "who is {t}, {0} or {1}?"),
    *("which {k} came out first, {0} or {1}", "which is {t}, {0} or {1}?", "which {k} is {t}: {0} or {1}?"),
    *("are {0} and {1} both {k}s?", "were both {0} and {1} {d} in the same country?", "is {0} {t} than {1}?"),
    *("do {0} and {1} share the same nationality?", "are {0} and {1} located in the same state?"),
    *("what do {0} and {1} have in common?", "what nationality are both {0} and {1}?", "{0} compared to {1}"),
    *("between {0} and {1}, which has more {k}s?", "{0} and {1} were both what?", "did {0} or {1} win more awards?"),
    *(
        "does {0} or {1} have more members?",
        "which of the {k}s {0} and {1} has more {h}?",
        "was {0} or {1} {d} earlier?",
    ),
    *("who has more scope of work, {0} or {1}?", "are both {0} and {1} {k}s from the same decade?"),
    *("when was the {r} of {0} born?", "what is the nationality of the {r} of the {k} {0}?"),
    *("where did the {r} who made {0} study?", "what other {k} was made by the {r} of {0}?"),
    *("{0} is a {k} by a {r} who was born in what year?", "the {k} {0} stars an actor who also played what role?"),
    *("what is the {f} of the {k} where {0} was {d}?", "{0} was {d} by the {r} of which {k}?"),
    *("in which {k} did the {r} of {0}, who was also the {r} of {1}, grow up?",),
    *("what {k} features the {r} that also worked with {0} on {1}?", "who is the {r} of the {k} that {0} joined?"),
    *("what are the {f}s of the {n} {m} {h}?", "what is the {f} of each of the {n} {m} {h}?"),
    *("which of the top {n} {m} {h} has the highest {f}?", "list the {f} of the last {n} {r}s of {0}"),
    *("who are the {r}s of the top {n} {h} and where were they born?", "of the {n} {m} {h}, which has the lowest {f}?"),
    *("how many of the {n} {m} {h} are in the same region as {0}?", "for the {n} {m} {h}, what are their {f}s?"),
    *(
        "how has {0} changed since {1}?",
        "did {0} begin before {1} ended?",
        "what is the total {f} of {0} and {1} combined?",
    ),
    *("who is the {r} of {0} and what is its {f}?", "when did {0} start and how many {h} took part?"),
)
_ONSETS = "b bl br c ch cl cr d dr f fl g gl gr h j k kl l m n p pl qu r s sh sk sl sn sp st t tr v w wh y z".split()
_VOWELS = "a a e e i i o o u oo ee ai ou y".split()
_CODAS = ["", "", "", "", *"n r l s t x ck m nd p sh ng zz d g".split()]
_PARTS = (
    """air app auto bank bay bike black blue book box buzz byte cafe car cart city class click cloud code craft crowd
    daily data deal digi dog drive easy farm fast film fin fire fit flow fly food forum fox free fun game gamer geek
    gold green grid hack home host house hub idea insta job jobs kids kit lab land law learn life lingo link list live
    loop mail map market media meta mind mix money moon movie music my name net news next note now one open page park
    pay pedia pet photo pix planet play post press quick rail read red review ride road room run safe scout search
    shop sky smart snap social soft song space sport spot star stock store story stream street style sun swap talk tech
    ticket time tip top track trade travel tube tv tutor vibe video view voice wave web wiki wire wise word work world
    yard zone"""
).split()
_TAILS = "ly ify er hub io a o ster ist io ia 24 360 365 go it up us".split()
_NEIGHBOURS = {
    letter: near
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for letter, near in zip(
        row, (f"{row[max(0, at - 1)]}{row[at + 1 : at + 2]}" for at in range(len(row))), strict=True
    )
}


def invented_names(count: int, rng: random.Random) -> list[str]:
    """Names as sites have them: compounds, syllables, both with an ending."""
    return [_invented(rng) for _ in range(count)]


def _invented(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(("", "", " ", "-")).join(rng.sample(_PARTS, 2))
    if kind < 0.45:
        return f"{rng.choice(('the ', 'my', 'go', 'e', 'i'))}{rng.choice(_PARTS)}{rng.choice(_PARTS)}"
    syllables = "".join(
        rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))
    )
    if kind < 0.75:
        return syllables
    return f"{syllables}{rng.choice(('', ' '))}{rng.choice(_PARTS)}" if kind < 0.9 else syllables + rng.choice(_TAILS)


def navigational(name: str, rng: random.Random, *, bare: bool) -> str:
    """One query for the site of that name. ``bare``: the name alone may be one, since it is no word of a language."""
    kind = rng.random()
    if kind < 0.3 and bare:
        return _mistyped_name(name, rng) if rng.random() < 0.25 else name
    if kind < 0.55:
        named = name if rng.random() < 0.7 else host(name, rng)
        return f"{named} {rng.choice(_PAGES)}"
    if kind < 0.7:
        return f"{rng.choice(_GO)} {name if rng.random() < 0.7 else host(name, rng)}"
    return address(name, rng)


def host(name: str, rng: random.Random) -> str:
    label = re.sub(r"[^a-z0-9-]+", rng.choice(("", "", "-")), name.casefold()).strip("-") or "site"
    return f"{label}.{rng.choice(ENDINGS)}"


def address(name: str, rng: random.Random) -> str:
    """An address, sometimes the way people get it wrong."""
    where = host(name, rng)
    label, _, ending = where.partition(".")
    return rng.choice(
        (
            where,
            where,
            f"www.{where}",
            f"https://{where}",
            f"http://www.{where}/",
            f"https://www.{where}/{rng.choice(_PARTS)}",
            f"{where}/{rng.choice(_PARTS)}",
            f"{label} .{ending}",
            f"{label} {ending.replace('.', ' ')}",
            f"www {label} {ending.replace('.', ' ')}",
            f"ww.{where}",
            f"www. {where}",
            f"{label}.{'con' if ending == 'com' else ending}",
            f"{label},{ending}",
        )
    )


def question_about(name: str, rng: random.Random) -> str:
    return rng.choice(_ASKS).format(name)


def question_on(topic: str, rng: random.Random) -> str:
    return rng.choice(_TOPIC_ASKS).format(topic)


def several_looks(topics: Sequence[str], rng: random.Random) -> str:
    """A question on topics that compares, chains, fans out or asks twice."""
    return rng.choice(_TOPIC_COMPARISONS).format(
        *rng.sample(list(topics), 2),
        k=rng.choice(_KINDS),
        t=rng.choice(_TRAITS),
        d=rng.choice(("founded", "born", "released", "built", "established", "published", "written")),
        r=rng.choice(_ROLES),
        f=rng.choice(_FACTS),
        h=rng.choice(_THINGS),
        n=rng.choice(_NUMBERS),
        m=rng.choice(_MOSTS),
    )


_KEYWORDS = (
    *("{0}", "{0}", "{0}", "{0} news", "{0} map", "{0} 2020", "{0} symptoms", "{0} update", "{0} cases", "latest {0}"),
    *(
        "{0} today",
        "{0} near me",
        "{0} list",
        "{0} usa",
        "new {0}",
        "{0} facts",
        "{0} meaning",
        "{0} near {1}",
        "{0} in {1}",
    ),
)


def keywords(words: Sequence[str], rng: random.Random) -> str:
    """What people type who look for a topic and not for a site: one to three words of a text, in their order."""
    many = min(len(words), rng.choice((1, 1, 2, 2, 2, 3, 3, 4)))
    at = rng.randrange(len(words) - many + 1)
    return rng.choice(_KEYWORDS).format(" ".join(words[at : at + many]), rng.choice(words))


def two_in_one(first: str, second: str, rng: random.Random) -> str:
    """Two questions asked as one."""
    head = first.rstrip(" ?.!")
    return rng.choice((f"{head} and {second}", f"{head}, and {second}", f"{first} {second}", f"{head}? also {second}"))


def comparison(names: Sequence[str], rng: random.Random) -> str:
    """A question of two or three names that needs more than one look."""
    return rng.choice(_COMPARISONS).format(*rng.sample(list(names), 3))


def _mistyped_name(name: str, rng: random.Random) -> str:
    return mistyped(name, rng) if len(name) > 3 else name


def mistyped(text: str, rng: random.Random) -> str:
    """With one slip of the hand in a longer word: a letter doubled, lost, swapped with the next, or its neighbour."""
    places = list(re.finditer(r"[^\W\d_]{4,}", text))
    if not places:
        return text
    word = rng.choice(places)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    slip = rng.randrange(4)
    if slip == 0:
        return text[:at] + text[at] + text[at:]
    if slip == 1:
        return text[:at] + text[at + 1 :]
    if slip == 2:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + rng.choice(_NEIGHBOURS.get(text[at].casefold(), text[at])) + text[at + 1 :]


_REWORDINGS: Sequence[tuple[re.Pattern[str], tuple[str, ...]]] = tuple(
    (re.compile(pattern, re.IGNORECASE), ways)
    for pattern, ways in (
        (r"^what is\b", ("what's", "whats", "what exactly is", "tell me what is")),
        (r"^what are\b", ("what're", "which are", "name")),
        (r"^who is\b", ("who's", "whos")),
        (r"^which\b", ("what",)),
        (r"^how many\b", ("what number of",)),
        (
            r"^(?=(?:who|what|when|where|why|how|which)\b)",
            ("and ", "so ", "hey, ", "please tell me ", "i want to know "),
        ),
        (r"^when (?:was|is|did)\b", ("in what year was", "on what date was")),
        (r"^(do|does|did|is|are|was|were|can|could|would|should|will)\b", (r"so \1", r"hey, \1", r"please: \1")),
        (r"\bthe\b ", ("",)),
    )
)


def reworded(text: str, rng: random.Random) -> str:
    """The same question in other words, or the same text when no way to say it otherwise is known."""
    fitting = [(pattern, ways) for pattern, ways in _REWORDINGS if pattern.search(text)]
    if not fitting:
        return text
    pattern, ways = rng.choice(fitting)
    return pattern.sub(rng.choice(ways), text, count=1)


def remarked(text: str, rng: random.Random) -> str:
    """The same without its sentence mark, or with one: people type both."""
    bare = text.rstrip(" ?.!")
    return bare if bare != text.rstrip() else f"{bare}{rng.choice(('?', '?', ' ?', '??', '.'))}"


def said_otherwise(text: str, rng: random.Random, *, asks: bool) -> str:
    """A typo, other marks or other words. Only questions are reworded and remarked."""
    ways = (mistyped, remarked, reworded, reworded) if asks else (mistyped,)
    changed = rng.choice(ways)(text, rng)
    return mistyped(changed, rng) if rng.random() < 0.2 else changed


_ALPHABETS = (("а", 32), ("α", 24), ("א", 27), ("ا", 28), ("अ", 50), ("가", 2000), ("一", 6000), ("あ", 80), ("ก", 40))
_OWN_MARKS = {"一": "？", "あ": "？", "ا": "؟"}


def in_another_alphabet(text: str, rng: random.Random) -> str:
    """The text in letters the rules cannot read: what is not understood goes where everything ambiguous goes."""
    first, size = rng.choice(_ALPHABETS)
    shift = rng.randrange(size)
    spaced = first not in ("一", "あ", "ก")
    letters = (
        chr(ord(first) + (ord(letter) * 7 + shift) % size) if letter.isalpha() else letter
        for letter in text[:40].casefold()
        if spaced or not letter.isspace()
    )
    return "".join(letters).replace("?", _OWN_MARKS.get(first, "?"))


def distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
