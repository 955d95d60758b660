"""A configuration file, with the line of each of its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

from serving.layering.keys import Path
from serving.settings import read


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """``tree`` is the settings tree as written, ``document`` the whole Serve file, for its HTTP options.

    ``lines`` counts from 1. ``repeated`` are keys of the tree that stand twice, of which YAML silently takes the last.
    """

    name: str
    tree: Any
    document: dict[str, Any] = field(default_factory=dict)
    lines: Mapping[Path, int] = field(default_factory=dict)
    repeated: tuple[Path, ...] = ()


def read_file(path: File) -> SettingsFile:
    """Reads a Serve file. Raises :class:`~serving.settings.SettingsError` when it is none; its keys are not checked."""
    document = read(path)
    tree = document["applications"][0].get("args") or {}
    lines: dict[Path, int] = {}
    repeated: list[Path] = []
    for at, line in _keys(_args(yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader))):
        if at in lines:
            repeated.append(at)
        lines[at] = line
    return SettingsFile(shown(path), tree, document, lines, tuple(repeated))


def shown(path: File) -> str:
    """``path`` as a person would write it from here."""
    try:
        return str(path.absolute().relative_to(File.cwd()))
    except (ValueError, OSError):
        return str(path)


def _args(node: Node | None) -> Node | None:
    applications = _child(node, "applications")
    if not isinstance(applications, SequenceNode) or not applications.value:
        return None
    return _child(applications.value[0], "args")


def _child(node: Node | None, name: str) -> Node | None:
    if not isinstance(node, MappingNode):
        return None
    return next((value for key, value in reversed(node.value) if key.value == name), None)


def _keys(node: Node | None, path: Path = (), inside: tuple[Node, ...] = ()) -> Iterator[tuple[Path, int]]:
    if not isinstance(node, MappingNode) or node in inside:
        return
    for key, value in node.value:
        if key.tag == "tag:yaml.org,2002:merge":  # its keys are an alias's, written elsewhere
            continue
        at = (*path, str(key.value))
        yield at, key.start_mark.line + 1
        yield from _keys(value, at, (*inside, node))
