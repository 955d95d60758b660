"""Front matter: what a Markdown file says of itself before its text, in YAML (``---``) or TOML (``+++``)."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

import yaml

_YAML = re.compile(r"\A---[ \t]*\n(?=[\w-]+[ \t]*:)((?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_TOML = re.compile(r"\A\+\+\+[ \t]*\n((?:.*\n)*?)\+\+\+[ \t]*(?:\n|\Z)")
_MAX_CHARACTERS = 65_536

_DATES = ("updated", "lastmod", "date", "published")
"""The keys that are looked at for a date, the first that holds one counting: how current the text is, before when it
first came out."""


class FrontMatter(NamedTuple):
    """What is used of front matter, and the text below it."""

    title: str | None
    published_at: datetime | None
    text: str


def split(text: str) -> FrontMatter:
    """Title and date where front matter gives them, and the text without it. Front matter that is broken gives none."""
    for pattern, read in ((_YAML, _yaml), (_TOML, _toml)):
        if match := pattern.match(text):
            fields = read(match[1]) if len(match[1]) <= _MAX_CHARACTERS else {}
            title = fields.get("title")
            dates = (as_date(fields.get(key)) for key in _DATES)
            return FrontMatter(
                title=title if isinstance(title, str) else None,
                published_at=next((found for found in dates if found), None),
                text=text[match.end() :],
            )
    return FrontMatter(None, None, text)


def _yaml(written: str) -> dict[str, Any]:
    try:
        fields = yaml.safe_load(written)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError, AttributeError, LookupError):
        return {}  # the text counts, whatever stands above it; PyYAML raises more than its own errors
    return fields if isinstance(fields, dict) else {}


def _toml(written: str) -> dict[str, Any]:
    try:
        return tomllib.loads(written)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return {}


def as_date(value: object) -> datetime | None:
    """A date as people write it, in UTC: ISO 8601, or already one. A day is its first moment; no zone means UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time.min)
    if not isinstance(value, datetime):
        return None
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError):  # the first and last days of the calendar, moved by a zone
        return None
