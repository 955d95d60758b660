"""The options that several commands share, and the settings they choose."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from serving.cli.console import fail
from serving.layering.files import read_file
from serving.layering.keys import choices, names
from serving.layering.layers import Effective, layered
from serving.settings import SettingsError

CONFIGURATION = "Configuration"
"""The panel of ``--help`` that these options stand in."""

# The embedded target is what runs when no file is named. It lies beside the packages in a checkout.
EMBEDDED = Path(__file__).parents[2] / "configs" / "embedded.yaml"


def complete_key(incomplete: str) -> list[str]:
    """The keys that ``incomplete`` begins, each ready for its value; after that, the values that may follow."""
    key, equals, begun = incomplete.partition("=")
    if equals:
        return [f"{key}={choice}" for choice in choices(tuple(key.split("."))) if choice.startswith(begun)]
    return [f"{name}=" for name in names() if name.startswith(incomplete)]


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="ANSWER_CONFIG",
        help="A Serve file.",
        metavar="FILE",
        show_default="configs/embedded.yaml",
        rich_help_panel=CONFIGURATION,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key over the file and the environment. May be repeated.",
        show_default=False,
        autocompletion=complete_key,
        rich_help_panel=CONFIGURATION,
    ),
]
Url = Annotated[str, typer.Option(envvar="ANSWER_URL", help="The server to ask.")]


def config_file(config: Path | None) -> Path | None:
    """The file that is named, else the embedded target's, else none."""
    return EMBEDDED if config is None and EMBEDDED.is_file() else config


def effective(config: Path | None, sets: Sequence[str] | None) -> Effective:
    """The settings of the file, the environment and ``--set``. Raises ``SettingsError``."""
    path = config_file(config)
    return layered(read_file(path) if path else None, os.environ, sets or ())


def chosen(config: Path | None, sets: Sequence[str] | None) -> Effective:
    """The same; ends the command with what is wrong."""
    try:
        return effective(config, sets)
    except SettingsError as error:
        fail(str(error), code=2)
