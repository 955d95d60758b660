"""The command itself: which settings, which machine, what to print, which exit code."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from serving.cli.doctor.examine import CHECKS, WITHOUT_SETTINGS, examine
from serving.cli.doctor.findings import Finding, Status, Subject, ok, problem
from serving.cli.doctor.machine import Machine, ThisMachine
from serving.cli.doctor.report import as_json, lines, worst
from serving.cli.options import EMBEDDED, Config, Sets, config_file, effective
from serving.layering.faults import ConfigurationError
from serving.layering.files import shown
from serving.settings import Settings, SettingsError

ROOT = EMBEDDED.parents[1]
"""The checkout, when this runs from one."""


def doctor(
    config: Config = None,
    sets: Sets = None,
    url: Annotated[
        str | None,
        typer.Option(envvar="ANSWER_URL", help="Check the server that runs there, too.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check this machine, the packages, models, index and settings; for each fault, print the command that mends it.

    Exit code 0 when nothing stands in the way (warnings do not), 1 when something does. Nothing is changed or fetched.
    """
    findings = list(diagnose(ThisMachine(), config, sets or (), url))
    if json:
        sys.stdout.write(as_json(findings))
    else:
        width = min(120, shutil.get_terminal_size().columns)
        sys.stdout.writelines(f"{line}\n" for line in lines(findings, width))
    if worst(findings) is Status.PROBLEM:
        raise typer.Exit(1)


def diagnose(machine: Machine, config: Path | None, sets: Sequence[str], url: str | None) -> Iterator[Finding]:
    """What the settings' own check finds, then all checks that there are settings for."""
    root = ROOT if (ROOT / "pyproject.toml").is_file() else None
    path = config_file(config)
    name = shown(path) if path else "the defaults"
    try:
        found = effective(config, sets)
    except SettingsError as error:
        faults = error.faults if isinstance(error, ConfigurationError) else (error,)
        fix = f"answer config check {shlex.quote(name)}" if path else "answer config check"
        for fault in faults:
            yield problem("config", str(fault), fix)
        checks = [(check, run) for check, run in CHECKS if check in WITHOUT_SETTINGS]
        skipped = ", ".join(check for check, _ in CHECKS if check not in WITHOUT_SETTINGS)
        yield from examine(machine, Subject(Settings(), url=url, root=root), checks)
        yield Finding("config.skipped", Status.WARNING, f"not checked without settings: {skipped}", fix)
        return
    changed = ", ".join(str(o) for _, _, o in found.values() if o.kind in ("environment", "flag"))
    yield ok("config", f"{name} can run" + (f"; set elsewhere: {changed}" if changed else ""))
    http = found.document.get("http_options") or {}
    subject = Subject(
        found.settings, config=name if config else "", http=http if isinstance(http, dict) else {}, url=url, root=root
    )
    yield from examine(machine, subject)
