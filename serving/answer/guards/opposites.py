"""The lexicon of opposites: words that cannot both be true of one thing in one respect, and words that negate."""

from __future__ import annotations

from serving.answer.text import stem

# One pair of opposed groups a line: each word on the left opposes each on the right.
_POLAR = """
increase increased increases increasing rise rises rose risen grow grows grew grown gain gained raised /
    decrease decreased decreases decreasing fall falls fell fallen decline declined drop dropped shrank reduce reduced
allow allowed allows permit permitted permits legal lawful authorised authorized /
    forbid forbidden forbids prohibit prohibited prohibits ban banned illegal unlawful
include includes included including / exclude excludes excluded excluding
true correct right accurate / false incorrect wrong inaccurate untrue
enable enabled enables activate activated / disable disabled disables deactivate deactivated
accept accepted accepts approve approved approves / reject rejected rejects refuse refused refuses deny denied
win wins won winning victory / lose loses lost losing defeat
succeed succeeded succeeds success successful / fail failed fails failure unsuccessful
support supported supports / oppose opposed opposes
agree agreed agrees / disagree disagreed disagrees
open opened opens opening / close closed closes closing shut
begin begins began begun start started starts / end ended ends finish finished finishes stop stopped
arrive arrived arrives / depart departed departs
enter entered enters / exit exited exits
buy buys bought purchase purchased / sell sells sold
lend lends lent / borrow borrows borrowed
hot warm / cold cool
safe harmless / unsafe dangerous harmful hazardous
possible / impossible
able / unable
present / absent
alive living / dead deceased
male / female
man men / woman women
boy boys / girl girls
public / private
positive / negative
strong strengthen strengthened / weak weaken weakened
easy / difficult hard
rich wealthy / poor
old ancient elderly / young
new modern / old ancient
full / empty
wet / dry
happy / unhappy sad
likely / unlikely
common / uncommon rare
known / unknown
mandatory required compulsory obligatory / optional voluntary
internal / external
import imports imported / export exports exported
north northern / south southern
east eastern / west western
left / right
early / late
ancestor ancestors / descendant descendants
protect protects protected / endanger endangers endangered
love loves loved like likes liked / hate hates hated dislike dislikes disliked
awake / asleep
push pushes pushed pushing / pull pulls pulled pulling
"""

_COMPARATIVE = """
more greater higher larger bigger / less fewer lower smaller
most highest largest biggest greatest / least fewest lowest smallest
longer / shorter
longest / shortest
taller / shorter
tallest / shortest
older elder / younger
oldest eldest / youngest newest
earlier sooner / later
earliest / latest
faster quicker / slower
fastest quickest / slowest
better / worse
best / worst
stronger / weaker
heavier / lighter
hotter warmer / colder cooler
hottest warmest / coldest coolest
richer / poorer
cheaper / costlier dearer
closer nearer / farther further
deeper / shallower
wider broader / narrower
first / last final
before prior / after following
above over / below under beneath
inside within / outside
maximum max / minimum min
upper / lower
majority / minority
"""


def _opposed(text: str) -> dict[str, frozenset[str]]:
    """Word to the words that oppose it."""
    table: dict[str, frozenset[str]] = {}
    for line in text.replace("\n    ", " ").strip().splitlines():
        left, _, right = line.partition("/")
        for words, others in ((left.split(), right.split()), (right.split(), left.split())):
            for word in words:
                table[word] = table.get(word, frozenset()) | frozenset(others)
    return table


def _grouped(text: str) -> dict[str, frozenset[str]]:
    """Word to the words on its own side of its lines, itself among them."""
    table: dict[str, frozenset[str]] = {}
    for line in text.replace("\n    ", " ").strip().splitlines():
        for side in line.split("/"):
            for word in side.split():
                table[word] = table.get(word, frozenset()) | frozenset(side.split())
    return table


POLAR = _opposed(_POLAR)
COMPARATIVE = _opposed(_COMPARATIVE)
ALIKE = _grouped(_POLAR) | _grouped(_COMPARATIVE)
"""Word to what says the same: where evidence holds one of these, an opposite beside it decides nothing."""

INVERTIBLE = frozenset(COMPARATIVE) | {"before", "after", "above", "below", "buy", "sell", "lend", "borrow"}
"""``A is older than B`` is ``B is younger than A``: with the arguments turned round, an opposite says the same."""

NEGATIONS = frozenset("not no never none neither nor cannot without nobody nothing nowhere n't".split())
"""What negates in so many words, contractions apart."""

IMPLICIT = frozenset(
    stem(word)
    for word in (
        "lack lacks lacked lacking absent absence fail fails failed failing refuse refuses refused deny denies denied "
        "prevent prevents prevented avoid avoids avoided unable impossible hardly barely rarely seldom scarcely except "
        "excluding exclude excluded excludes instead ceased cease ban banned forbid forbidden prohibit prohibited "
        "rejected reject false untrue unlikely cancelled canceled cancel scrapped scrapping abandoned incapable "
        "insufficient myth misconception stayed longer"
    ).split()
)
"""Stems of words that carry a negation which a paraphrase may spell out. In evidence they make a guard abstain."""

NEGATIVE_PREFIXES = ("un", "in", "im", "non", "dis", "ir", "il")
