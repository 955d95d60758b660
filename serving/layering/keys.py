"""The keys of the settings tree, as dotted names, read from its models: nothing is listed twice."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel

from serving.settings import Settings

Path = tuple[str, ...]


def dotted(path: Sequence[object]) -> str:
    return ".".join(map(str, path))


def alternatives(annotation: Any) -> list[Any]:
    """The types that ``annotation`` allows, without ``Annotated`` and ``Union`` around them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return alternatives(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [one for part in get_args(annotation) for one in alternatives(part)]
    return [annotation]


def allowed_at(path: Path, model: type[BaseModel] = Settings) -> list[Any]:
    """The types of the value at ``path``; none when there is no such key."""
    allowed: list[Any] = [model]
    for name in path:
        allowed = [one for parent in allowed for one in _below(parent, name)]
    return allowed


def _below(parent: Any, name: str) -> list[Any]:
    if is_section(parent):
        field = parent.model_fields.get(name)
        return alternatives(field.annotation) if field else []
    if is_mapping(parent):
        return alternatives((*get_args(parent), Any, Any)[1])
    return [Any] if parent is Any else []


def is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def is_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    return isinstance(origin, type) and issubclass(origin, Mapping)


def is_collection(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    return isinstance(origin, type) and issubclass(origin, Mapping | Sequence | set | frozenset) and origin is not str


def walk(model: type[BaseModel] = Settings, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Every key below ``model``, parents first, and whether it is a section."""
    for name, field in model.model_fields.items():
        sections = [one for one in alternatives(field.annotation) if is_section(one)]
        yield (*path, name), bool(sections)
        for section in sections:
            yield from walk(section, (*path, name))


@cache
def names() -> tuple[str, ...]:
    """Every key that holds a value, dotted, in the order of the tree."""
    return tuple(dict.fromkeys(dotted(path) for path, section in walk() if not section))


@cache
def sections() -> tuple[str, ...]:
    """Every key that holds other keys."""
    return tuple(dict.fromkeys(dotted(path) for path, section in walk() if section))


def nearest(key: str) -> str | None:
    """The key that was probably meant: its last part may stand elsewhere in the tree, or be misspelt."""
    known = (*names(), *sections())
    moved = [name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]]
    if len(moved) == 1:
        return moved[0]
    return next(iter(difflib.get_close_matches(key, moved or known, n=1, cutoff=0.0 if moved else 0.6)), None)


def choices(path: Path) -> list[str]:
    """The values that the key at ``path`` may have, where they are few."""
    found: list[str] = []
    for one in allowed_at(path):
        if get_origin(one) is Literal:
            found += map(str, get_args(one))
        elif isinstance(one, type) and issubclass(one, Enum):
            found += (str(member.value) for member in one)
        elif one is bool:
            found += ("true", "false")
        elif one is types.NoneType:
            found.append("null")
    return found


def value_of(text: str, path: Path) -> Any:
    """What ``text``, from a flag or a variable, says for the key at ``path``.

    ``null`` is nothing where that is allowed; ``[…]`` and ``{…}`` are YAML where a list or a section is. All else stays
    text, which the settings turn into the number, switch or path that they want. Raises ``ValueError`` for wrong YAML.
    """
    allowed = allowed_at(path)
    if text.strip() == "null" and types.NoneType in allowed:
        return None
    structured = any(one is Any or is_section(one) or is_collection(one) for one in allowed)
    if structured and (Any in allowed or text.lstrip().startswith(("[", "{"))):
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"is no YAML: {' '.join(str(error).split())}") from error
    return text
