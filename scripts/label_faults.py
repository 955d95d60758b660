"""Pairs of the grounding dev files that are labelled supported although the document does not say what the claim says.

Each was read. Left out are claims that are merely worded freely, spelled otherwise or true by common knowledge: there
the guard is at fault.
"""

from __future__ import annotations

_ONLY = "the document says that it is so, not that nothing else is"
_ABSENT = "the document does not mention"

FAULTS = {
    "expertqa-168": f"{_ABSENT} the organisations that the claim names",
    "expertqa-646": f"{_ABSENT} the 12 and 36 hours: they are the question's",
    "expertqa-748": "the document is about lasers",
    "expertqa-749": "the document says 0.65, and of extreme cases; the claim says 50 %",
    "expertqa-819": f"{_ABSENT} the name that the claim says the therapies have",
    "expertqa-911": f"{_ABSENT} Madagascar",
    "expertqa-1004": "the claim is about a numbered passage of a prompt",
    "expertqa-1177": f"{_ABSENT} the 19th century, nor grammarians of it",
    "expertqa-1457": f"{_ABSENT} that he was Italian",
    "expertqa-1467": "the claim is cut off at the number of a list's first item",
    "factcheck_gpt-1465": f"{_ABSENT} Germany: it speaks of Zurich",
    "factcheck_gpt-1466": f"{_ABSENT} Germany",
    "factcheck_gpt-1871": f"{_ABSENT} the National Institutes of Health",
    "factcheck_gpt-2231": f"{_ABSENT} bellflowers or meadows",
    "factcheck_gpt-2430": "the document says 26 August 1914, the claim December 22, 1914",
    "fever_symmetric-87": f"{_ABSENT} the film, nor its year",
    "fever_symmetric-119": f"{_ONLY}; and it is a drama there, a comedy in the claim",
    "fever_symmetric-246": "a football player may be a musician",
    "fever_symmetric-306": _ONLY,
    "fever_symmetric-307": _ONLY,
    "fever_symmetric-345": "to be against an industry is no lack of any relation to it",
    "fever_symmetric-350": _ONLY,
    "fever_symmetric-372": _ONLY,
    "fever_symmetric-400": f"{_ABSENT} the film or sound; it was nominated for a song",
    "fever_symmetric-435": _ONLY,
    "fever_symmetric-440": f"{_ABSENT} the film, nor its year",
    "fever_symmetric-442": "the document says that she is a film producer, the claim that she did not work in film",
    "fever_symmetric-444": "the document says that the only host is Defconn",
    "fever_symmetric-465": _ONLY,
    "fever_symmetric-466": _ONLY,
    "fever_symmetric-498": "a blues guitarist's album may be a rock album",
    "fever_symmetric-510": "the document says April, the claim August",
    "fever_symmetric-543": _ONLY,
    "fever_symmetric-544": _ONLY,
    "fever_symmetric-567": "an actor and producer may be a musician",
    "fever_symmetric-591": _ONLY,
    "fever_symmetric-592": _ONLY,
    "fever_symmetric-594": "one film in 2015 says nothing of television",
    "fever_symmetric-629": "the document says ABS, the claim ABC",
    "fever_symmetric-642": "the document says that his name is Lindstrom, and that he is known by the other",
}
"""Row id to what is wrong with its label."""
