"""Checks of an answer that need no model: its words against the reference's, its citations against the row's labels.

Numbers and names are read here apart from the product's own guards on purpose: a fault there must not hide itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from serving.answer.text import content_words
from serving.answer.wire import Answer, PassageOut
from serving.evaluation.estimates import NotApplicable, Score
from serving.evaluation.memory import identity
from serving.evaluation.rows import QaRow
from serving.evaluation.strings import answer_share

SHORT_WORDS = 8
"""A reference of at most so many words is looked for as a string; a longer one is a text, compared by its words."""

_FACT = re.compile(r"\d+(?:[.,]\d+)*|\b\w+(?:\.\w+)+|\b\w*_\w+|(?<=[\w,;:(] )[A-Z]\w+|\b[a-z]+[A-Z]\w*")
"""A number, a dotted or underscored name, or a capitalised word that begins no sentence."""


def is_short(row: QaRow) -> bool:
    answers = [answer for reading in row.readings() for answer in reading]
    return bool(answers) and all(len(answer.split()) <= SHORT_WORDS for answer in answers)


def reference_recall(text: str, references: Sequence[str]) -> Score:
    """The share of a reference's content words that the text holds: of the reference that it holds most of."""
    return _best_share([(set(content_words(reference)), set(content_words(text))) for reference in references])


def reference_precision(text: str, references: Sequence[str]) -> Score:
    """The share of the text's content words that stand in a reference: in the one that holds most."""
    return _best_share([(set(content_words(text)), set(content_words(reference))) for reference in references])


def answer_in_cited(answer: Answer, row: QaRow) -> Score:
    """The share of the row's readings of which a short answer stands in a passage that the answer cites."""
    if not is_short(row):
        return NotApplicable.NO_REFERENCE
    return answer_share("\n".join(passage.text for passage in cited(answer)), row.readings())


def cited_supporting(answer: Answer, row: QaRow) -> Score:
    """The share of the answer's citations that name a passage the reference rests on."""
    labels = supporting(row)
    known = [labels.get(identity(passage.title, passage.text)) for passage in _citations(answer)]
    marked = [label for label in known if label is not None]
    if not marked:
        return NotApplicable.NO_LABEL if known else NotApplicable.NO_CITATIONS
    return sum(marked) / len(marked)


def facts_found(answer: Answer) -> Score:
    """The share of the claims with numbers or names in them whose numbers and names all stand in what they cite."""
    outcomes: list[bool] = []
    for claim in answer.claims:
        facts = {fact.casefold() for fact in _FACT.findall(claim.text)}
        if facts:
            cites = [answer.passages[citation.chunk] for citation in claim.citations]
            evidence = "\n".join(f"{each.title}\n{' '.join(each.heading_path)}\n{each.text}" for each in cites)
            outcomes.append(all(fact in evidence.casefold() for fact in facts))
    return sum(outcomes) / len(outcomes) if outcomes else NotApplicable.NO_STATEMENTS


def supporting(row: QaRow) -> dict[str, bool | None]:
    """Whether the reference rests on each passage of the row, by the passage's identity; None where nobody said."""
    return {identity(passage.title, passage.text): passage.supporting for passage in row.passages}


def cited(answer: Answer) -> list[PassageOut]:
    """The passages that the answer cites, each once, in chunk order."""
    chunks = {citation.chunk for claim in answer.claims for citation in claim.citations}
    return [answer.passages[chunk] for chunk in sorted(chunks)]


def _citations(answer: Answer) -> list[PassageOut]:
    return [answer.passages[citation.chunk] for claim in answer.claims for citation in claim.citations]


def _best_share(pairs: Sequence[tuple[set[str], set[str]]]) -> Score:
    shares = [len(wanted & there) / len(wanted) for wanted, there in pairs if wanted]
    return max(shares) if shares else NotApplicable.NO_REFERENCE
