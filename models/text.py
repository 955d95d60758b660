"""Makes any string one that a tokenizer accepts."""

from __future__ import annotations


def readable(text: str) -> str:
    """``text`` with half surrogates joined, what is left of them replaced, and NULs turned into spaces."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", " ")
