"""``--help`` teaches: examples that can be run, panels, what is next, within 80 columns; and the shell completes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from serving.cli import main
from serving.layering.keys import names

COMMANDS = [
    (),
    ("up",),
    ("ask",),
    ("index",),
    ("search",),
    ("calibrate",),
    ("doctor",),
    ("errors",),
    ("prompt",),
    ("eval",),
    ("finetune",),
    ("gaps",),
    ("gaps", "list"),
    ("gaps", "show"),
    ("gaps", "resolve"),
    ("gaps", "reopen"),
    ("gaps", "export"),
    ("gaps", "retry"),
    ("weights",),
    ("weights", "add"),
    ("weights", "list"),
    ("weights", "use"),
    ("config",),
    ("config", "show"),
    ("config", "check"),
]


def answer(*arguments: str, **environment: str) -> Result:
    environment = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", **environment}
    return CliRunner().invoke(main.app, list(arguments), prog_name="answer", env=environment)


def helped(*command: str) -> str:
    result = answer(*command, "--help")
    assert result.exit_code == 0
    return str(result.stdout)


def examples(*command: str) -> list[str]:
    return re.findall(r"^ *\$ (.*?) *$", helped(*command), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_80_columns_and_ends_with_examples_and_what_is_next(command: tuple[str, ...]) -> None:
    text = helped(*command)
    assert max(map(len, text.splitlines())) <= 80
    assert 2 <= len(examples(*command)) <= 3
    assert "Examples:" in text
    assert re.search(r"Next: |--help` has examples", text)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_example_is_a_command_that_is_understood(command: tuple[str, ...]) -> None:
    for example in examples(*command):
        words = shlex.split(example.partition(" | ")[0])
        while "=" in words[0]:
            words.pop(0)
        assert words.pop(0) == "answer"
        root = typer.main.get_command(main.app)
        context = root.make_context("answer", words, resilient_parsing=False)
        name, found, rest = root.resolve_command(context, [*context._protected_args, *context.args])  # type: ignore[attr-defined]
        while hasattr(found, "commands"):
            inner = found.make_context(name, rest, parent=context)
            name, found, rest = found.resolve_command(inner, [*inner._protected_args, *inner.args])
        assert found is not None
        found.make_context(name, rest, parent=context)  # raises when an option or argument is wrong


def test_every_command_is_looked_at() -> None:
    def walk(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        yield path
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))

    assert set(walk(typer.main.get_command(main.app))) == set(COMMANDS)


@pytest.mark.parametrize("command", ["up", "index", "search", "doctor"])
def test_options_of_the_configuration_stand_together(command: str) -> None:
    panel = helped(command).partition("─ Configuration ")[2].partition("╰")[0]
    assert "--config" in panel
    assert "--set" in panel


def test_answer_alone_is_help_and_no_failure() -> None:
    result = answer()
    assert result.exit_code == 0
    assert "$ answer up" in result.stdout


def test_version() -> None:
    result = answer("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"answer (\d+\.\d+\.\d+|\(not installed.*\))\n", result.stdout)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(("serch",), "search"), (("docter",), "doctor"), (("config", "chek"), "check")],
)
def test_what_is_mistyped_is_guessed(typed: tuple[str, ...], meant: str) -> None:
    result = answer(*typed)
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'" in result.stderr


def test_an_option_that_is_mistyped_is_guessed() -> None:
    result = answer("up", "--prot", "1")
    assert result.exit_code == 2
    assert "--port" in result.stderr


# Completion


def completed(line: str, shell: str = "bash") -> list[str]:
    """What the shell offers at the end of ``line``."""
    words = line.split(" ")
    environment = {"_ANSWER_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    result = CliRunner().invoke(main.app, [], prog_name="answer", env=environment)
    return str(result.stdout).split()


def test_commands_and_options_are_completed() -> None:
    assert completed("answer do") == ["doctor"]
    assert completed("answer config s") == ["show"]
    assert completed("answer up --se") == ["--set"]


@pytest.mark.parametrize("command", ["up", "index", "search x", "doctor", "config show", "config check"])
def test_keys_are_completed_everywhere(command: str) -> None:
    assert completed(f"answer {command} --set models.synthesizer.m") == [
        f"{name}=" for name in names() if name.startswith("models.synthesizer.m")
    ]


def test_values_are_completed_where_they_are_few() -> None:
    assert completed("answer up --set answer.grammar=") == [
        f"answer.grammar={value}" for value in ("quotes", "markers", "structured", "free")
    ]
    assert completed("answer up --set models.embedder.dtype=b") == ["models.embedder.dtype=bfloat16"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_itself_and_leaves_paths_to_the_shell(tmp_path: Path) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "serving.cli.main", "--show-completion", "bash"],
        # The shell is named, since what runs the tests need not be one.
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "complete -o default" in script  # with nothing of ours to offer, bash offers files
    command = tmp_path / "answer"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m serving.cli.main "$@"\n')
    command.chmod(0o755)
    asked = (
        f'{script}\nask() {{ COMP_WORDS=("$@"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
        f"_answer_completion '{command}'; printf '%s\\n' \"${{COMPREPLY[*]}}\"; }}\n"
        "ask answer do; ask answer up --config conf\n"
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["doctor", ""]
