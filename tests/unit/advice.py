"""Reads what an error of the settings says to do, so that tests can do it."""

from __future__ import annotations

import re
from typing import Any

import yaml

ADVICE = re.compile(r"(?:set|and) ((?:[a-z_]+\.)*[a-z_]+) to (\d+(?:\.\d+)?|null)")


def nested(path: tuple[str, ...], leaf: Any) -> Any:
    for name in reversed(path):
        leaf = {name: leaf}
    return leaf


def merged(tree: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """``tree`` with what ``other`` says instead."""
    out = dict(tree)
    for key, value in other.items():
        out[key] = merged(out.get(key) or {}, value) if isinstance(value, dict) else value
    return out


def advised(message: str) -> dict[str, Any]:
    """The tree that a message says to write."""
    tree: dict[str, Any] = {}
    for key, value in ADVICE.findall(message):
        tree = merged(tree, nested(tuple(key.split(".")), yaml.safe_load(value)))
    return tree
