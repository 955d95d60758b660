"""The BM25 half of a generation, in tantivy: terms of three fields, and each passage whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import tantivy

from serving.answer.types import Passage
from serving.retrieval.analysis import query_words, words
from serving.retrieval.records import decode, encode

BOOSTS = {"title": 3.0, "heading": 1.5, "body": 1.0}
"""What a match in a field counts for."""

TIE_BREAKER = 0.3
"""What the fields that match a term less well add: a term in all three fields is not three terms."""

MAX_QUERY_TERMS = 256
"""Distinct terms of a query that are searched, the first ones: more is not a question but a document."""

_WRITER_HEAP_BYTES = 64_000_000
_LONGEST_TERM_BYTES = 200
_DELETED_AT_ONCE = 1000


class Hit(NamedTuple):
    """A passage by its ordinal in the generation, and its BM25 score."""

    ordinal: int
    score: float


def _analyser() -> Any:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    for step in (
        tantivy.Filter.remove_long(_LONGEST_TERM_BYTES),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("English"),
    ):
        builder = builder.filter(step)
    return builder.build()


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("ordinal", indexed=True, fast=True)
    builder.add_unsigned_field("document", indexed=True)
    for name in BOOSTS:
        # The terms are analysed here, on both sides, so the index only has to split them at spaces.
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field("passage", stored=True)
    return builder.build()


def is_immutable(name: str) -> bool:
    """Whether a file of a lexical half is written once: all but the list of them."""
    return not name.endswith(("meta.json", ".managed.json", ".lock"))


class LexicalWriter:
    """Writes a lexical half: a new one, or the changes to the one in ``folder``, whose segments it never rewrites.

    A passage has an ordinal of its own, given by the caller; ``number`` is that of its document's first passage.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._analyser = _analyser()
        self._schema = _schema()
        # One thread: the same passages in the same order make the same index.
        self._writer = tantivy.Index(self._schema, path=str(folder)).writer(_WRITER_HEAP_BYTES, 1)
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Also after an error: its threads would go on writing to a folder that is being removed.
        self._close()

    def add(self, ordinal: int, passage: Passage, number: int) -> None:
        document = tantivy.Document()
        document.add_unsigned("ordinal", ordinal)
        document.add_unsigned("document", number)
        document.add_text("title", self._terms(passage.title))
        document.add_text("heading", self._terms("\n".join(passage.heading_path)))
        document.add_text("body", self._terms(passage.text))
        document.add_bytes("passage", encode(passage))
        self._writer.add_document(document)

    def remove(self, numbers: Sequence[int]) -> None:
        """Take the passages of these documents out, of those that were there before this writer was opened."""
        for start in range(0, len(numbers), _DELETED_AT_ONCE):
            some = list(numbers[start : start + _DELETED_AT_ONCE])
            # By query: deleting by term takes a number for a signed one, and finds nothing.
            self._writer.delete_documents_by_query(tantivy.Query.term_set_query(self._schema, "document", some))

    def finish(self) -> None:
        """Write everything out, and wait until small segments are merged."""
        self._writer.commit()
        self._close()
        for lock in self._folder.glob(".*.lock"):
            lock.unlink()

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._writer.wait_merging_threads()

    def _terms(self, text: str) -> str:
        return " ".join(self._analyser.analyze(" ".join(words(text))))


class LexicalReader:
    """Searches a lexical half. Safe to use from several threads. Opening raises ``ValueError`` if it is unreadable."""

    def __init__(self, folder: Path) -> None:
        index = tantivy.Index.open(str(folder))
        # A generation never changes: nothing to watch for.
        index.config_reader("manual", 0)
        self._schema = index.schema
        self._searcher = index.searcher()
        self._analyser = _analyser()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def search(self, query: str, limit: int) -> list[Hit]:
        """At most ``limit`` hits, best first. ``query`` is any text; a text without words finds nothing."""
        terms = dict.fromkeys(self._analyser.analyze(" ".join(query_words(query))))
        if not terms or limit < 1:
            return []
        clauses = [(tantivy.Occur.Should, self._anywhere(term)) for term in list(terms)[:MAX_QUERY_TERMS]]
        found = self._searcher.search(tantivy.Query.boolean_query(clauses), limit, count=False).hits
        ordinals = self._ordinals([address for _, address in found])
        return [Hit(ordinal, float(score)) for ordinal, (score, _) in zip(ordinals, found, strict=True)]

    def frequencies(self, asked: Sequence[str]) -> list[int]:
        """How many passages hold each word; of a word with several parts, the rarest part counts."""
        return [
            min((self._holding(term) for term in self._analyser.analyze(" ".join(words(word)))), default=0)
            for word in asked
        ]

    def _holding(self, term: str) -> int:
        return int(self._searcher.search(self._anywhere(term), 1, count=True).count)

    def passages(self, ordinals: Iterable[int]) -> dict[int, Passage]:
        """The passages at ``ordinals``, each with its ordinal, in no order."""
        wanted = list(ordinals)
        if not wanted:
            return {}
        query = tantivy.Query.term_set_query(self._schema, "ordinal", wanted)
        addresses = [address for _, address in self._searcher.search(query, len(wanted), count=False).hits]
        records = (self._searcher.doc(address)["passage"][0] for address in addresses)
        return dict(zip(self._ordinals(addresses), map(decode, records), strict=True))

    def _anywhere(self, term: str) -> Any:
        """The term in any field, by its best field."""
        fields = [
            tantivy.Query.boost_query(tantivy.Query.term_query(self._schema, name, term, "freq"), boost)
            for name, boost in BOOSTS.items()
        ]
        return tantivy.Query.disjunction_max_query(fields, TIE_BREAKER)

    def _ordinals(self, addresses: Sequence[Any]) -> list[int]:
        return [int(value) for value in self._searcher.fast_field_values("ordinal", list(addresses))]
