"""The layers, one on the other: defaults, a file, the environment, flags. Every value remembers where it came from."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from serving.layering.environment import nearest_variable, settings_in
from serving.layering.faults import LIST_KEYS, ConfigurationError, Fault, faults_of, unknown_key
from serving.layering.files import SettingsFile
from serving.layering.keys import Path, allowed_at, dotted, value_of
from serving.layering.origins import Origin, Origins
from serving.settings import Settings, SettingsError, parse

FLAG = "--set"


@dataclass(frozen=True, slots=True)
class Effective:
    """Settings as they run, and of each value, by its path, where it came from (the defaults are not listed)."""

    settings: Settings
    origins: Origins
    document: Mapping[str, Any] = field(default_factory=dict)
    """The Serve file, for its HTTP options; empty without one."""

    def values(self) -> Iterator[tuple[Path, Any, Origin]]:
        """Every value in the order of the tree, as JSON has it, with its origin."""
        for path, value in _leaves(self.settings.model_dump(mode="json")):
            yield path, value, self.origins.of(path)


@dataclass(frozen=True, slots=True)
class _Assignment:
    path: Path
    text: str
    origin: Origin


def layered(file: SettingsFile | None, environ: Mapping[str, str], flags: Sequence[str] = ()) -> Effective:
    """Settings from ``file``, then ``environ``, then ``flags`` (``key=value``); a later one wins over an earlier.

    Raises :class:`ConfigurationError` with every fault at once.
    """
    tree, origins, faults = _of_file(file)
    for assignment in _assignments(environ, flags, faults):
        try:
            value = value_of(assignment.text, assignment.path)
        except ValueError as error:
            faults.append(Fault(dotted(assignment.path), str(error), "quote it for the shell", assignment.origin))
            continue
        if _assign(tree, assignment.path, value):
            origins.put(assignment.path, value, assignment.origin)
    try:
        settings = parse(tree)
    except SettingsError as error:
        raise ConfigurationError([*faults, *faults_of(error, origins)]) from error
    if faults:
        raise ConfigurationError(faults)
    return Effective(settings, origins, file.document if file else {})


def _of_file(file: SettingsFile | None) -> tuple[Any, Origins, list[Fault]]:
    origins = Origins()
    if file is None:
        return {}, origins, []
    for path, _ in _leaves(file.tree if isinstance(file.tree, dict) else {}):
        origins.put(path, None, _place(file, path))
    faults = [
        Fault(dotted(path), "stands twice, and only the last one counts", "remove one", _place(file, path))
        for path in file.repeated
    ]
    return copy.deepcopy(file.tree), origins, faults


def _place(file: SettingsFile, path: Path) -> Origin:
    line = next((file.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in file.lines), None)
    return Origin("file", file.name if line is None else f"{file.name}:{line}")


def _assignments(environ: Mapping[str, str], flags: Sequence[str], faults: list[Fault]) -> Iterator[_Assignment]:
    """What the environment and the flags set, in the order in which it counts. Wrong names go to ``faults``."""
    for name, path, text in settings_in(environ):
        origin = Origin("environment", name)
        if allowed_at(path):
            yield _Assignment(path, text, origin)
        else:
            meant = nearest_variable(name)
            fix = f"write {meant}" if meant else f"unset {name}; {LIST_KEYS}"
            faults.append(Fault(name, "no such setting", fix, origin))
    for flag in flags:
        key, equals, text = flag.partition("=")
        key, origin = key.strip(), Origin("flag", f"{FLAG} {key.strip()}")
        if not equals:
            faults.append(Fault(key, "has no value", f"write {FLAG} {key or 'KEY'}=VALUE", origin))
        elif allowed_at(tuple(key.split("."))):
            yield _Assignment(tuple(key.split(".")), text, origin)
        else:
            faults.append(unknown_key(key, origin))


def _assign(tree: Any, path: Path, value: Any) -> bool:
    """Puts ``value`` at ``path``; a mapping is laid over what is there. False where the tree above is no mapping."""
    if not isinstance(tree, dict):
        return False
    for name in path[:-1]:
        if tree.get(name) is None:
            tree[name] = {}
        tree = tree[name]
        if not isinstance(tree, dict):
            return False
    before = tree.get(path[-1])
    if isinstance(value, dict) and isinstance(before, dict):
        for name, part in value.items():
            _assign(before, (str(name),), part)
    else:
        tree[path[-1]] = value
    return True


def _leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, dict) and tree:
        for name, value in tree.items():
            yield from _leaves(value, (*path, str(name)))
    elif path:
        yield path, tree
