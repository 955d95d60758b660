"""The lexicon of names: countries and their adjectives where the root differs, and capitals that name nothing."""

from __future__ import annotations

_PLACES = """
american: america us u.s usa united states
america: american us usa united states
us: america american united states
usa: america american united states
british: britain uk england english
britain: british uk
uk: britain british united kingdom
english: england british
french: france
france: french
german: germany
germany: german
spanish: spain
spain: spanish
dutch: netherlands holland
netherlands: dutch holland
swiss: switzerland
switzerland: swiss
welsh: wales
wales: welsh
irish: ireland
ireland: irish
scottish: scotland scots
scotland: scottish scots
danish: denmark
denmark: danish
greek: greece
greece: greek
polish: poland
poland: polish
turkish: turkey
turkey: turkish
swedish: sweden
sweden: swedish
finnish: finland
finland: finnish
thai: thailand
chinese: china
china: chinese
portuguese: portugal
filipino: philippines
philippines: filipino
european: europe eu
eu: european europe
asian: asia
asia: asian
cyprus: cypriot
tv: television
television: tv
cypriot: cyprus
"""

DEMONYMS: dict[str, tuple[str, ...]] = {
    name: tuple(others.split())
    for name, others in ((line.split(":")[0], line.split(":")[1]) for line in _PLACES.strip().splitlines())
}

UNTELLING = frozenset(
    "mr mrs ms dr prof sir lord lady president king queen prince princess pope saint st jr sr inc ltd corp co company "
    "university city county state river mount lake island the i i'm i've i'd i'll ok okay yes no yeah oh well wow hi "
    "hello internet english god north south east west northern southern eastern western class dear client agent".split()
)
"""Titles, kinds of place and words that are capitalised without naming: the name beside them is what tells."""
