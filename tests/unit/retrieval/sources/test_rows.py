"""JSON Lines: rows that are passages, and rows that are none."""

import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import BinaryIO

import pytest

from serving.answer.types import Passage
from serving.retrieval.documents import Document, Item, Skipped, SkipReason
from serving.retrieval.sources.decoding import SkipError
from serving.retrieval.sources.found import Found
from serving.retrieval.sources.options import Dates, Format
from serving.retrieval.sources.rows import MAX_ROW_BYTES, PassageRow, documents

DATED = datetime(2020, 1, 1, tzinfo=UTC)
FULL = {
    "id": "algeria-1",
    "text": "Algiers is the capital.",
    "title": "Algeria",
    "url": "https://x.y/algeria",
    "source": "factbook",
    "heading_path": ["Algeria", "Government"],
    "source_path": "algeria.html",
    "repo_path": "github.com/o/n",
    "commit_sha": "abc",
    "published_at": "2024-01-02T03:04:05+01:00",
    "score": 0.5,
}


def read(content: bytes | BinaryIO, dates: Dates = Dates.FRONT_MATTER) -> Iterator[Item]:
    found = Found("docs/rows.jsonl", "docs", "rows.jsonl", "/docs/rows.jsonl", Format.JSONL, open=NotImplemented)
    return documents(found, io.BytesIO(content) if isinstance(content, bytes) else content, dates, DATED)


def lines(*rows: object) -> bytes:
    return b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)


def passage(item: Item) -> Passage:
    assert isinstance(item, Document), item
    assert item.ready is not None
    [found] = item.ready
    return found


def skipped(content: bytes) -> Skipped:
    [item] = read(content)
    assert isinstance(item, Skipped)
    return item


def test_a_row_has_the_fields_of_a_passage() -> None:
    assert set(PassageRow.model_fields) == {field.name for field in fields(Passage)}
    [item] = read(lines(FULL))
    assert passage(item) == Passage(
        id="algeria-1",
        text="Algiers is the capital.",
        title="Algeria",
        url="https://x.y/algeria",
        source="factbook",
        heading_path=("Algeria", "Government"),
        source_path="algeria.html",
        repo_path="github.com/o/n",
        commit_sha="abc",
        published_at=datetime(2024, 1, 2, 2, 4, 5, tzinfo=UTC),
    )


def test_a_row_with_text_alone_takes_the_rest_from_its_file() -> None:
    one, other = (passage(item) for item in read(lines({"text": "One."}, {"text": "Other."})))
    assert (one.source, one.source_path, one.published_at) == ("docs", "rows.jsonl", None)
    assert one.id != other.id


def test_a_row_keeps_its_key_when_rows_move() -> None:
    first, second = read(lines({"text": "One."}, FULL))
    again, *_ = read(lines(FULL, {"text": "One."}))
    assert isinstance(second, Document)
    assert isinstance(again, Document)
    assert again.key == second.key == "/docs/rows.jsonl#algeria-1"
    assert again.fingerprint == second.fingerprint
    assert isinstance(first, Document)
    assert first.key != second.key


@pytest.mark.parametrize(
    ("dates", "with_own", "without"),
    [
        (Dates.FRONT_MATTER, 2024, None),
        (Dates.FILE, 2024, 2020),
        (Dates.NONE, None, None),
    ],
)
def test_dates(dates: Dates, with_own: int | None, without: int | None) -> None:
    years = [getattr(passage(item).published_at, "year", None) for item in read(lines(FULL, {"text": "x"}), dates)]
    assert years == [with_own, without]


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"title": "No text."}, "text: Field required"),
        ({"text": " \n"}, "text: "),
        ({"text": 5}, "text: should be a valid string"),
        ({"text": "x", "headings": []}, "headings: no such field; a row may have text, id"),
        ({"text": "x", "heading_path": "A"}, "heading_path: should be a valid"),
        ({"text": "x", "published_at": "soon"}, "published_at"),
        ({"text": "x", "url": "javascript:alert(1)"}, "url: "),
        ({"text": "x", "id": "two words"}, "id: "),
        ({"text": "x" * 100_001}, "text: should have at most 100000 characters"),
        (["text"], "a row is one JSON object"),
        (b'{"text": "x"\n', "Invalid JSON"),
        (b'{"text": "\\ud800"}\n', "Invalid JSON"),
        (b"[" * 100_000 + b"\n", "Invalid JSON"),
    ],
)
def test_a_bad_row_is_named_with_what_was_expected(row: object, detail: str) -> None:
    good, bad, also_good = read(lines({"text": "a"}, row, {"text": "b"}))
    assert isinstance(bad, Skipped)
    assert (bad.path, bad.reason) == ("docs/rows.jsonl:2", SkipReason.BAD_ROW)
    assert detail in bad.detail
    assert len(bad.detail) < 1500
    assert [passage(good).text, passage(also_good).text] == ["a", "b"]


def test_lines_that_are_no_text_or_too_long() -> None:
    assert skipped(lines(b'{"text": "caf\xe9"}\n')).reason is SkipReason.BAD_ENCODING
    long, after = read(lines({"text": "x" * 3 * MAX_ROW_BYTES}, {"text": "after"}))
    assert isinstance(long, Skipped)
    assert (long.path, long.reason) == ("docs/rows.jsonl:1", SkipReason.TOO_LARGE)
    assert passage(after).text == "after"


def test_blank_lines_count_and_a_byte_order_mark_does_not() -> None:
    good, bad = read(b"\xef\xbb\xbf" + lines({"text": "a"}, b"\n", b"oops"))
    assert passage(good).text == "a"
    assert isinstance(bad, Skipped)
    assert bad.path.endswith(":3")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"text": "a"}'.encode("utf-16"), SkipReason.BAD_ENCODING),
        (b"\0\1\2", SkipReason.BINARY),
        (gzip.compress(lines({"text": "a"}))[:-9], SkipReason.UNREADABLE),
        (b"\x1f\x8b\x08nonsense", SkipReason.UNREADABLE),
    ],
    ids=["utf-16", "zeros", "cut gzip", "no gzip"],
)
def test_files_that_are_no_rows(content: bytes, reason: SkipReason) -> None:
    with pytest.raises(SkipError) as caught:
        list(read(content))
    assert caught.value.reason is reason


def test_gzip_is_read_whatever_the_name() -> None:
    assert [passage(item).text for item in read(gzip.compress(lines({"text": "a"}, {"text": "b"})))] == ["a", "b"]


def test_rows_are_read_one_at_a_time() -> None:
    class Endless(io.RawIOBase):
        """Would never be read to its end."""

        def __init__(self) -> None:
            super().__init__()
            self.given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # what BufferedReader gives
            row = lines({"text": f"row {self.given}"})
            buffer[: len(row)] = row
            self.given += 1
            return len(row)

    endless = Endless()
    rows = read(io.BufferedReader(endless))
    assert [passage(next(rows)).text for _ in range(3)] == ["row 0", "row 1", "row 2"]
    assert endless.given < 10
