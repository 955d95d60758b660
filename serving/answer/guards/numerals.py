"""The lexicon of numbers: words for values, for scales and for parts, and what marks a value as a bound."""

from __future__ import annotations

CARDINALS = {
    word: value
    for value, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
            *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
        )
    )
}
TENS = {
    word: 10 * value
    for value, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
SHORT_SCALES = {"k": 1e3, "mn": 1e6, "mln": 1e6, "bn": 1e9, "tn": 1e12}
"""Written on to digits, or after them. ``m`` and ``b`` are scales after a currency sign only."""

GROUPS = {"dozen": 12, "dozens": 12, "score": 20}
PARTS = {"half": 1 / 2, "halves": 1 / 2, "third": 1 / 3, "thirds": 1 / 3, "quarter": 1 / 4, "quarters": 1 / 4}
PARTS |= {"fifth": 1 / 5, "fifths": 1 / 5, "tenth": 1 / 10, "tenths": 1 / 10}

ORDINALS = {
    word: value
    for value, word in enumerate(
        (
            *("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"),
            *("thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
            "twentieth",
        ),
        start=3,
    )
}
"""``first`` is a comparative (against ``last``) and ``second`` a unit of time as often as an ordinal."""

EVIDENCE_ORDINALS = ORDINALS | {"first": 1, "second": 2}
COUNTING = {
    "once": 1,
    "single": 1,
    "sole": 1,
    "solo": 1,
    "twice": 2,
    "both": 2,
    "pair": 2,
    "couple": 2,
    "duo": 2,
    "two": 2,
    "double": 2,
    "doubled": 2,
    "dual": 2,
    "twin": 2,
    "twins": 2,
    "thrice": 3,
    "triple": 3,
    "tripled": 3,
    "trio": 3,
    "quartet": 4,
    "quintet": 5,
    "trilogy": 3,
}
"""Words that imply a number. They can tell that a claim's number stands in evidence; a claim is not held to them."""

ORDINAL_ENDINGS = frozenset(("st", "nd", "rd", "th"))
ABOUT = frozenset(
    ("about", "around", "approximately", "approx", "roughly", "nearly", "almost", "circa", "some", "~", "≈")
)
ABOVE = frozenset(("over", "above", "exceeding", "exceeds", "exceed", "minimum", ">", "≥"))
BELOW = frozenset(("under", "below", "maximum", "<", "≤"))
TWO_WORDS_ABOVE = frozenset(
    (("more", "than"), ("greater", "than"), ("at", "least"), ("no", "less"), ("higher", "than"))
)
TWO_WORDS_BELOW = frozenset((("less", "than"), ("fewer", "than"), ("at", "most"), ("up", "to"), ("lower", "than")))
