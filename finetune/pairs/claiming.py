"""Claims over passages, for the verifier: made by code from passages and answered questions, and labelled by people."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice

from finetune.pairs.declaring import declared
from finetune.pairs.falsifying import falsified
from finetune.pairs.groups import VERIFIER, Group, Row, around, focus, is_statement, sentences
from finetune.pairs.paraphrasing import paraphrase
from serving.answer.guards.names import names
from serving.answer.guards.reading import Reading
from serving.answer.prompt import premise
from serving.answer.text import content_words
from serving.answer.types import Passage
from serving.evaluation.rows import GroundingRow, QaRow

_PACK = 4


def strangers(passages: Sequence[Passage], rng: random.Random, count: int = 400) -> list[str]:
    """Names of some passages: what a claim about another one may be made to name."""
    found: dict[str, None] = {}
    for passage in rng.sample(passages, min(len(passages), count)):
        read = Reading(passage.text[:400])
        for name in islice(names(read.tokens), 2):
            found[read.text[name[0].start : name[-1].end]] = None
    return list(found)


def from_passages(
    passages: Sequence[Passage], wanted: int, words: int, rng: random.Random, kind: str
) -> Iterator[Group]:
    """Up to ``wanted`` groups of claims over the surroundings of a sentence: true, nearly true, true elsewhere."""
    maker = _Maker(strangers(passages, rng), words, rng)
    order = rng.sample(passages, len(passages))
    made = 0
    for number, passage in enumerate(order):
        told = sentences(passage.text)
        at = [place for place, sentence in enumerate(told) if is_statement(sentence)]
        if not at or made >= wanted:
            continue
        group = maker.over(passage, told, rng.choice(at), order[number - 1])
        if len(group) > 1:
            made += 1
            yield Group(VERIFIER, tuple(group), kind)


class _Maker:
    """Makes claims over passages, of documents with at most ``words`` words; ``elsewhere`` are names of other ones."""

    def __init__(self, elsewhere: Sequence[str], words: int, rng: random.Random) -> None:
        self._elsewhere = elsewhere
        self._words = words
        self._rng = rng

    def over(self, passage: Passage, told: Sequence[str], at: int, other: Passage) -> list[Row]:
        """Rows of claims about sentence ``at`` of ``told``, the passage's; ``other`` knows nothing of it."""
        rng = self._rng
        near = around(told, at, rng.randint(20, self._words), rng)
        document, text = _document(passage, near), " ".join(near)
        claim = paraphrase(told[at], passage.title, rng)
        rows = [Row(document, claim, label=True)]
        changed = falsified(claim if rng.random() < 0.7 else told[at], text, self._elsewhere, rng, 2)
        rows += [Row(document, false, label=False) for false, _ in changed]
        drawn = rng.random()
        if drawn < 0.3:
            rows += _without(passage, near, told[at], claim, other)
        elif drawn < 0.55:
            rows += _halves(document, near, claim, changed, rng)
        elif drawn < 0.7 and len(near) > 1:
            rows.append(Row(document, paraphrase(rng.choice(near), passage.title, rng), label=True))
        return rows


def _without(passage: Passage, near: Sequence[str], sentence: str, claim: str, other: Passage) -> list[Row]:
    """The claim over its passage without the sentence that proves it, or where nothing is left over the other one."""
    left = [one for one in near if one != sentence]
    lacking, owner = (left, passage) if left else (sentences(other.text)[:3], other)
    if set(content_words(claim)) <= set(content_words(" ".join(lacking))):
        return []
    return [Row(_document(owner, lacking), claim, label=False)]


def _halves(
    document: str, near: Sequence[str], claim: str, changed: Sequence[tuple[str, str]], rng: random.Random
) -> list[Row]:
    """Two statements in one, both true, or one of them false."""
    second = [sentence for sentence in near if is_statement(sentence) and sentence != claim]
    if not second:
        return []
    joined = rng.choice(second)
    rows = [Row(document, f"{claim} {joined}", label=True)]
    if changed:
        halves = [changed[0][0], joined]
        rng.shuffle(halves)
        rows.append(Row(document, " ".join(halves), label=False))
    return rows


def from_answers(rows: Sequence[QaRow], words: int, rng: random.Random) -> Iterator[Group]:
    """Statements made of questions with short answers, and the same with another answer of the passage."""
    for row in rows:
        if not row.answerable or not row.answers or not row.passages:
            continue
        answer, passage = row.answers[0], row.passages[0]
        claim = declared(row.question, answer)
        told = sentences(passage.text)
        at = next((place for place, sentence in enumerate(told) if answer in sentence), None)
        if claim is None or at is None:
            continue
        near = around(told, at, rng.randint(30, words), rng)
        whole = Passage(id=row.id, title=passage.title, text="")
        made = [Row(_document(whole, near), claim, label=True)]
        for other in rng.sample(wrong := _alike(answer, " ".join(near)), min(2, len(wrong))):
            if false := declared(row.question, other):
                made.append(Row(_document(whole, near), false, label=False))
        left = [sentence for sentence in near if answer not in sentence]
        if left and rng.random() < 0.4:
            made.append(Row(_document(whole, left), claim, label=False))
        made += [Row(_document(whole, near), false, label=False) for false, _ in falsified(claim, "", (), rng, 1)]
        yield Group(VERIFIER, tuple(made), "answers")


def _alike(answer: str, text: str) -> list[str]:
    """Other values of the text that the answer could be taken for: numbers for a number, else names."""
    if answer[0].isdigit():
        found = re.findall(r"(?<![\w.,])\d[\d,.]*\d", text)
    else:
        read = Reading(text)
        found = [read.text[name[0].start : name[-1].end] for name in names(read.tokens)]
    return sorted({one for one in found if one not in answer and answer not in one})


def from_labels(rows: Sequence[GroundingRow], words: int, kind: str) -> Iterator[Group]:
    """Labelled pairs as they are, documents cut to where the claim is spoken of; those of one document together."""
    for _, same in groupby(rows, key=lambda row: row.document):
        made = [Row(focus(row.document, row.claim, words), row.claim, label=bool(row.label)) for row in same]
        for start in range(0, len(made), _PACK):
            yield Group(VERIFIER, tuple(made[start : start + _PACK]), kind)


def _document(passage: Passage, told: Sequence[str]) -> str:
    return premise(Passage(id="", title=passage.title, heading_path=passage.heading_path, text=" ".join(told)))
