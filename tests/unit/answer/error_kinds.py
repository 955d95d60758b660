"""Every typed error in ``serving`` and ``models``, found in the source; only modules that define one are imported."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from serving.answer.errors import AnswerError

ROOT = Path(__file__).parents[3]


def kinds() -> list[type[AnswerError]]:
    classes = [
        found for package in ("serving", "models") for path in (ROOT / package).rglob("*.py") for found in _of(path)
    ]
    names = {"AnswerError"}
    while more := {name for _, name, bases in classes if bases & names} - names:
        names |= more
    found = {getattr(importlib.import_module(module), name) for module, name, _ in classes if name in names}
    assert all(issubclass(kind, AnswerError) for kind in found)
    return sorted(found, key=str)


def _of(path: Path) -> list[tuple[str, str, set[str]]]:
    """Module, name and names of the bases of each class at the top of a file."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return [
        (module, node.name, {ast.unparse(base).split(".")[-1] for base in node.bases})
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
