"""What is wrong with a configuration: for each fault the key, what sets it, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from serving.layering.keys import Path, allowed_at, dotted, names, nearest
from serving.layering.origins import DEFAULT, Origin, Origins
from serving.layering.secrets import masked
from serving.settings import Settings, SettingsError

LIST_KEYS = "`answer config show` lists every key"


@dataclass(frozen=True, slots=True)
class Fault:
    """``key`` is dotted, or a variable's name; ``fix`` begins with a verb, and is empty where the message says it."""

    key: str
    message: str
    fix: str
    origin: Origin = DEFAULT

    def __str__(self) -> str:
        place = f" ({self.origin.place})" if self.origin.place and self.origin.place != self.key else ""
        key = "" if self.message.startswith(self.key) else f"{self.key}: "
        return f"{key}{self.message}{place}" + (f"; {self.fix}" if self.fix else "")


class ConfigurationError(SettingsError):
    """A configuration that cannot run, with every fault of it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)


def unknown_key(key: str, origin: Origin) -> Fault:
    meant = nearest(key)
    return Fault(key, "no such setting", f"write {meant}" if meant else f"remove it; {LIST_KEYS}", origin)


def faults_of(error: SettingsError, origins: Origins) -> Iterator[Fault]:
    """The faults in what the settings refused."""
    if not isinstance(error.__cause__, ValidationError):
        yield Fault("settings", str(error), "")
        return
    for details in error.__cause__.errors():
        if details["loc"]:
            yield _of_one(details, origins)
        else:
            yield from _of_the_whole(details, origins)


def _of_one(details: ErrorDetails, origins: Origins) -> Fault:
    path = tuple(map(str, details["loc"]))
    while len(path) > 1 and not allowed_at(path) and details["type"] != "extra_forbidden":
        path = path[:-1]  # the tag of a union, or a place in a list
    origin = origins.of(path)
    if origin is DEFAULT:
        origin = next(iter(origins.within(path)), DEFAULT)
    if details["type"] == "extra_forbidden":
        return unknown_key(dotted(path), origin)
    message = details["msg"].removeprefix("Value error, ")
    if details["type"] == "value_error":  # ours: it says what to write
        return Fault(dotted(path), *_parted(message), origin)
    given = details["input"]
    if isinstance(given, str | int | float | bool):
        message += f", and this is {masked(given, path[-1])!r}"
    return Fault(dotted(path), message, _default_of(path), origin)


def _default_of(path: Path) -> str:
    value: Any = Settings()
    for name in path:
        value = getattr(value, name, None)
    plain = isinstance(value, str | int | float | bool)
    return f"leave it out for the default, {value}" if plain else f"leave it out for the default; {LIST_KEYS}"


def _of_the_whole(details: ErrorDetails, origins: Origins) -> Iterator[Fault]:
    """Keys that contradict each other: the settings say them in one message, parted by semicolons."""
    message = details["msg"].removeprefix("Value error, ")
    for part in message.split("; ") if details["type"] == "value_error" else [message]:
        key = next((word for word in re.findall(r"[a-z_0-9]+(?:\.[a-z_0-9]+)*", part) if word in names()), None)
        origin = origins.of(tuple(key.split("."))) if key else DEFAULT
        yield Fault(key or "settings", *_parted(part), origin)


def _parted(message: str) -> tuple[str, str]:
    """What is wrong, and what to do."""
    wrong, colon, fix = message.partition(": set ")
    return (wrong, f"set {fix}") if colon else (message, "")
