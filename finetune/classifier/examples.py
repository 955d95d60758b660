"""What the classifier learns from: labelled queries, queries that the rules are sure of, and queries that code writes.

A query that nobody labels takes the rules' route. Where they find it ambiguous that is a single pass, and so it is
learned: it is the product's policy, and what keeps keywords out of the search route.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from finetune import data
from finetune.classifier import made
from finetune.classifier.settings import ClassifierSettings
from finetune.data import CorpusRow, Input
from finetune.errors import JobError
from models.ngrams import FUNCTION_WORDS
from serving.answer.reading import read
from serving.answer.routing import classify
from serving.answer.types import Route
from serving.evaluation.rows import RouteRow

NAMES = "installed package names"
OF_NAMES = ("packages", "invented")
"""Sources of what code writes about names. Calibration leaves them out too: of the data, one source goes places."""
TOPICS_ALONE = ("titles", "keywords")
"""Sources of queries that name a topic and ask nothing."""
_SURE = frozenset(["question word", "request", "question mark"])
_SHORT = 12
_PER_NAME = 3
_ALPHABET_SHARE = 0.05
_JOINED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Example:
    """A query and its route. ``clear``: the rules' route where they are sure of it and no label says otherwise.

    ``labelled`` by people or by how the query came about; ``made`` by the code here, and only to learn from.
    """

    id: str
    text: str
    route: Route
    source: str
    labelled: bool = False
    clear: Route | None = None
    made: bool = False


class ClassifierInputs:
    """The rows that the job is given, read and counted, and the names of the packages installed here."""

    def __init__(self, settings: ClassifierSettings) -> None:
        given, root = settings.data, settings.data_root
        self.routes: list[Input[RouteRow]] = data.routes(given.routes, root)
        self.topics: list[Input[CorpusRow]] = data.corpus(given.topics, root)
        if not self.routes:
            raise JobError("data.routes: name at least one file, e.g. --set data.routes=[route/bangs.jsonl.gz]")
        self.names = package_names()

    @property
    def all(self) -> list[Input[Any]]:
        digest = hashlib.sha256("\n".join(self.names).encode()).hexdigest()
        named: Input[Any] = Input(NAMES, digest, tuple(self.names), ())
        return [*self.routes, *self.topics, named]


def package_names() -> tuple[str, ...]:
    found = {str(name).casefold() for each in importlib.metadata.distributions() if (name := each.metadata["Name"])}
    return tuple(sorted(found))


def source_of(reference: str) -> str:
    return PurePosixPath(reference).name.partition(".")[0]


def sure(query: str) -> Route | None:
    """The route of the rules where they are sure: what they escalate or send away, and short plain questions."""
    found = classify(query)
    if found.route is not Route.SINGLE_PASS:
        return found.route
    plain = found.cue.partition(":")[0] in _SURE and len(read(query).words) <= _SHORT
    return Route.SINGLE_PASS if plain else None


def given(inputs: Sequence[Input[RouteRow]]) -> list[Example]:
    """The rows of route files as examples, in order."""
    return [_given(row, source_of(one.reference)) for one in inputs for row in one.rows]


def _given(row: RouteRow, source: str) -> Example:
    clear = sure(row.query)
    if row.route is None:
        return Example(row.id, row.query, clear or Route.SINGLE_PASS, source, clear=clear)
    return Example(row.id, row.query, row.route, source, labelled=True, clear=clear if clear is row.route else None)


def written(
    settings: ClassifierSettings, real: Sequence[Example], topics: Sequence[CorpusRow], names: Sequence[str]
) -> list[Example]:
    """The examples that code writes; the same for the same settings, rows and names.

    Those that are a real query said otherwise keep its source, so that they are left out with it.
    """
    rng = random.Random(settings.seed)  # noqa: S311 (repeatable, and nothing to guard)
    found = list(_of_names(settings, real, names, rng))
    if topics:
        found += _of_topics(settings, topics, rng)
    found += _joined(real, rng)
    found += _unread(real, rng)
    found += [_otherwise(one, rng) for one in (*real, *found)]
    return found


def _of_names(
    settings: ClassifierSettings, real: Sequence[Example], names: Sequence[str], rng: random.Random
) -> Iterator[Example]:
    invented = made.distinct(made.invented_names(settings.invented_names, rng))
    words = {word for one in real if one.route is not Route.SEARCH for word in read(one.text).words}
    for source, known, share in zip(OF_NAMES, (list(names), invented), (1.0, 0.3), strict=True):
        for name in known:
            for _ in range(_PER_NAME if share == 1.0 else 1):
                yield _made(made.navigational(name, rng, bare=name not in words), Route.SEARCH, source)
            for _ in range(_PER_NAME):
                if rng.random() < share:
                    yield _made(made.question_about(name, rng), Route.SINGLE_PASS, source)
                if rng.random() < share and len(known) >= 3:
                    yield _made(made.comparison(known, rng), Route.AGENTIC, source)


def _of_topics(settings: ClassifierSettings, rows: Sequence[CorpusRow], rng: random.Random) -> Iterator[Example]:
    titles = made.distinct(re.sub(r" [(].*", "", row.title) for row in rows)
    for _ in range(settings.made_questions):
        yield _made(made.several_looks(titles, rng), Route.AGENTIC, "topics")
        yield _made(made.question_on(rng.choice(titles), rng), Route.SINGLE_PASS, "topics")
    yield from (
        _made(title, Route.SINGLE_PASS, "titles")
        for title in rng.sample(titles, min(len(titles), settings.made_questions // 2))
    )
    for row in rng.choices(rows, k=settings.made_questions):
        words = [word for word in re.findall(r"[a-z]{3,}", row.text.casefold()) if word not in FUNCTION_WORDS]
        if words:
            yield _made(made.keywords(words, rng), Route.SINGLE_PASS, "keywords")


def _joined(real: Sequence[Example], rng: random.Random) -> Iterator[Example]:
    """Two labelled questions of a source as one."""
    plain = [one for one in real if one.labelled and one.route is Route.SINGLE_PASS]
    for first, second in itertools.pairwise(plain):
        if first.source == second.source and rng.random() < _JOINED_SHARE:
            text = made.two_in_one(first.text, second.text, rng)
            yield Example(f"{first.id}+", text, Route.AGENTIC, first.source, made=True)


def _unread(real: Sequence[Example], rng: random.Random) -> Iterator[Example]:
    for one in real:
        if one.route is not Route.SEARCH and rng.random() < _ALPHABET_SHARE:
            yield _made(made.in_another_alphabet(one.text, rng), Route.SINGLE_PASS, "alphabets")


def _otherwise(one: Example, rng: random.Random) -> Example:
    text = made.said_otherwise(one.text, rng, asks=one.route is not Route.SEARCH)
    return Example(f"{one.id}~", text, one.route, one.source, made=True)


def _made(text: str, route: Route, source: str) -> Example:
    return Example("", text, route, source, made=True)


def describe(examples: Sequence[Example]) -> str:
    counts = Counter((one.source, one.route.value) for one in examples)
    return ", ".join(f"{source} {route} {count}" for (source, route), count in sorted(counts.items()))
