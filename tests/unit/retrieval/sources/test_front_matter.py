from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from serving.retrieval.sources.front_matter import as_date, split


def test_yaml() -> None:
    assert split("---\ntitle: A page\ndate: 2024-03-05\ntags: [x]\n---\n\n# Head\n") == (
        "A page",
        datetime(2024, 3, 5, tzinfo=UTC),
        "\n# Head\n",
    )


def test_toml() -> None:
    text = '+++\ntitle = "A page"\npublished = 2024-03-05T10:00:00+02:00\n+++\nText.'
    assert split(text) == ("A page", datetime(2024, 3, 5, 8, tzinfo=UTC), "Text.")


@pytest.mark.parametrize(
    ("fields", "day"),
    [
        ("date: 2024-01-01\npublished: 2023-01-01\nupdated: 2025-01-01", 1),
        ("published: 2023-01-01\ndate: 2025-01-01", 1),
        ("lastmod: '2025-01-01'", 1),
        ("updated: soon\ndate: 2025-01-01", 1),
        ("date: soon", None),
        ("date: 2025-13-45", None),
        ("date: 2025", None),
    ],
)
def test_the_date_that_says_how_current_the_text_is(fields: str, day: int | None) -> None:
    found = split(f"---\n{fields}\n---\nText.").published_at
    assert found == (datetime(2025, 1, day, tzinfo=UTC) if day else None)


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: [broken\n---\nText.",
        "---\nkey: &a [*a]\n---\nText.",
        "---\na: {b: " + "[" * 5000 + "\n---\nText.",
        "---\n? [a]\n: b\ntitle: {[a]: b}\n---\nText.",
        "+++\ntitle = \n+++\nText.",
        "+++\na = " + "[" * 5000 + "\n+++\nText.",
        "---\nfar: " + "x" * 70_000 + "\ntitle: Long\n---\nText.",
    ],
)
def test_what_is_broken_gives_nothing_and_the_text_counts(text: str) -> None:
    found = split(text)
    assert (found.title, found.published_at) == (None, None)
    assert found.text.endswith("Text.")


@pytest.mark.parametrize("text", ["---\n\nA rule above.\n\n---\n", "Text.\n---\na: b\n---\n", "+++ plus\n", ""])
def test_text_that_has_none(text: str) -> None:
    assert split(text) == (None, None, text)


def test_dates_are_in_utc() -> None:
    east = timezone(timedelta(hours=14))
    assert as_date("2024-01-01T10:00:00+14:00") == datetime(2023, 12, 31, 20, tzinfo=UTC)
    assert as_date(date(2024, 1, 1)) == as_date("2024-01-01") == datetime(2024, 1, 1, tzinfo=UTC)
    assert as_date(datetime.fromisoformat("2024-01-01T02:00")) == datetime(2024, 1, 1, 2, tzinfo=UTC)
    assert as_date(datetime.min.replace(tzinfo=east)) is None
    assert as_date(2024) is as_date("yesterday") is None
