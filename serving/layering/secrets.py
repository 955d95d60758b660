"""Keeps secrets out of what is printed: by the name of their key, and inside URLs."""

from __future__ import annotations

import re
from typing import Any

MASK = "********"

_SECRET = re.compile(r"passw|passphrase|secret|credential|(^|_)(api)?keys?$|(^|_)token$")
_TOKENS = re.compile(r"(^|_)tokens$")  # a list of secrets, or a number of tokens
_IN_URL = re.compile(r"(?P<before>[a-z][a-z0-9+.-]*://[^\s/:@?#]*:)[^\s/?#]*(?P<after>@)", re.IGNORECASE)
_IN_QUERY = re.compile(r"(?P<before>[?&](?:[a-z_]*passw[a-z]*|[a-z_]*token|[a-z_]*key|[a-z_]*secret)=)[^\s&#]+", re.I)


def masked(tree: Any, name: str = "") -> Any:
    """A copy of ``tree``, found under the key ``name``, without its secrets."""
    name = name.lower()
    if _SECRET.search(name) or (_TOKENS.search(name) and not isinstance(tree, int | float)):
        return _hidden(tree)
    if isinstance(tree, dict):
        return {key: masked(value, str(key)) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [masked(value) for value in tree]
    return without_passwords(tree) if isinstance(tree, str) else tree


def _hidden(tree: Any) -> Any:
    """The shape of a secret, each value of it masked; what is empty shows that it is."""
    if isinstance(tree, dict):
        return {key: _hidden(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_hidden(value) for value in tree]
    return tree if tree is None or tree == "" or isinstance(tree, bool) else MASK


def without_passwords(text: str) -> str:
    """``text`` with the passwords of its URLs masked."""
    text = _IN_URL.sub(rf"\g<before>{MASK}\g<after>", text)
    return _IN_QUERY.sub(rf"\g<before>{MASK}", text)
