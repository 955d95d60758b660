import io
import json

from serving.retrieval.documents import Document, Skipped, SkipReason
from serving.retrieval.sources.tallying import Tally, tallied

ITEMS = [
    Document("text", "t", "s"),
    Skipped("a.md", SkipReason.EMPTY),
    Skipped("b.bin", SkipReason.BINARY, "a zero byte at offset 3"),
    Skipped("é.bin", SkipReason.BINARY, "x" * 500),
]


def test_everything_goes_by_and_is_counted_and_reported() -> None:
    tally, report = Tally(), io.StringIO()
    assert list(tallied(ITEMS, tally, report)) == ITEMS
    assert (tally.documents, tally.skipped) == (1, {SkipReason.EMPTY: 1, SkipReason.BINARY: 2})
    assert [json.loads(line) for line in report.getvalue().splitlines()] == [
        {"path": "a.md", "reason": "empty", "detail": ""},
        {"path": "b.bin", "reason": "binary", "detail": "a zero byte at offset 3"},
        {"path": "é.bin", "reason": "binary", "detail": "x" * 500},
    ]


def test_the_summary_is_one_short_line() -> None:
    tally = Tally()
    assert list(tallied(ITEMS[:1], tally)) == ITEMS[:1]
    assert tally.summary() == "1 document"
    list(tallied(ITEMS[1:], tally))
    assert tally.summary() == (
        "1 document; passed over: 2 binary (such as b.bin: a zero byte at offset 3), 1 empty (a.md)"
    )
    list(tallied([Skipped("c.txt", SkipReason.UNREADABLE, "y" * 500)], tally))
    assert len(tally.summary()) < 250
