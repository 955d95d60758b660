"""``answer config``: what the settings are, where each value came from, and what is wrong with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from serving.cli.console import fail, printable
from serving.cli.help import epilog
from serving.cli.options import Config, Sets, chosen, config_file, effective
from serving.layering.faults import ConfigurationError
from serving.layering.keys import dotted
from serving.layering.layers import Effective
from serving.layering.secrets import masked
from serving.settings import SettingsError

app = typer.Typer(
    no_args_is_help=True,
    epilog=epilog(
        ("answer config show", "the settings, and where each value came from"),
        ("ANSWER_ANSWER__MAX_SENTENCES=3 answer config show", "with one from the environment"),
        ("answer config check mine.yaml", "what is wrong with a file, and what to write instead"),
        after="Next: `answer config show --help`, `answer config check --help`.",
    ),
    help="""Show and check the settings: a file, then ANSWER_… variables, then --set, each later one winning.

A key with dots, such as models.synthesizer.dtype, is in the environment ANSWER_MODELS__SYNTHESIZER__DTYPE: capitals,
and two underscores for each dot.""",
)


@app.command(
    epilog=epilog(
        ("answer config show", "all settings; what is not a default says where it comes from"),
        ("answer config show --set answer.max_sentences=3 --origin", "what would run, the origin of every value"),
        ("answer config show --json | jq .origins", "for scripts"),
        after="Next: `answer config check FILE`, `answer up --config FILE`.",
    )
)
def show(
    config: Config = None,
    sets: Sets = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say where defaults come from, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document: settings and origins.")] = False,
    as_yaml: Annotated[
        bool, typer.Option("--yaml", help="Print plain YAML, as `args` of a Serve file hold it.")
    ] = False,
) -> None:
    """Print the settings that would run, and where each value came from. Secrets are masked."""
    if as_json and as_yaml:
        fail("choose --json or --yaml", code=2)
    found = chosen(config, sets)
    if as_json:
        sys.stdout.write(json.dumps(as_document(found), indent=2) + "\n")
    elif as_yaml and not origin:
        sys.stdout.write(yaml.safe_dump(masked_tree(found), sort_keys=False, allow_unicode=True))
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in commented(found, defaults=origin))


@app.command(
    epilog=epilog(
        ("answer config check configs/embedded.yaml", "exit code 0 when it can run, 2 when it cannot"),
        ("answer config check mine.yaml --set answer.candidates=30", "the file with a change"),
        ("answer config check mine.yaml --json", "the faults for scripts"),
        after="Next: `answer doctor --config FILE` checks the machine against it, `answer up --config FILE` runs it.",
    )
)
def check(
    file: Annotated[Path | None, typer.Argument(help="A Serve file; the default one when left out.")] = None,
    sets: Sets = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check a file together with the environment and --set; print every fault with its key and the fix."""
    name = str(config_file(file) or "the defaults")
    faults: list[dict[str, str]] = []
    try:
        effective(file, sets)
    except ConfigurationError as error:
        faults = [
            {"key": one.key, "message": one.message, "fix": one.fix, "origin": one.origin.place, "said": str(one)}
            for one in error.faults
        ]
    except SettingsError as error:
        faults = [{"key": "", "message": str(error), "fix": "", "origin": name, "said": str(error)}]
    if as_json:
        listed = [{key: value for key, value in fault.items() if key != "said"} for fault in faults]
        sys.stdout.write(json.dumps({"file": name, "ok": not faults, "faults": listed}, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{printable(' '.join(fault['said'].split()))}\n" for fault in faults)
        said = f"{len(faults)} fault{'s' * (len(faults) != 1)}" if faults else "can run"
        sys.stdout.write(f"{printable(name)}: {said}\n")
    if faults:
        raise typer.Exit(2)


def masked_tree(found: Effective) -> Any:
    return masked(found.settings.model_dump(mode="json"))


def as_document(found: Effective) -> dict[str, Any]:
    """``settings`` is the tree, ``origins`` says for each dotted key its ``kind`` and ``place``."""
    return {
        "version": found.settings.version,
        "settings": masked_tree(found),
        "origins": {dotted(path): {"kind": origin.kind, "place": origin.place} for path, _, origin in found.values()},
    }


def commented(found: Effective, *, defaults: bool) -> Iterator[str]:
    """The tree as YAML, with origins as comments, those of defaults by choice; so it can still be read as YAML."""
    tree = masked_tree(found)
    above: tuple[str, ...] = ()
    lines: list[tuple[str, str]] = []
    for path, _, origin in found.values():
        shared = next((n for n, (a, b) in enumerate(zip(path, above, strict=False)) if a != b), 0)
        lines += [(f"{'  ' * depth}{path[depth]}:", "") for depth in range(shared, len(path) - 1)]
        above = path
        comment = str(origin) if defaults or origin.kind != "default" else ""
        lines.append((f"{'  ' * (len(path) - 1)}{path[-1]}: {_scalar(_at(tree, path))}", comment))
    width = min(56, max((len(line) for line, comment in lines if comment), default=0))
    for line, comment in lines:
        yield f"{line:{width}}  # {comment}" if comment else line


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        tree = tree[name]
    return tree


def _scalar(value: Any) -> str:
    """One value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**9)
    text = text.removesuffix("...\n").strip()
    return json.dumps(value, ensure_ascii=False) if "\n" in text else text
