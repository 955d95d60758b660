"""``answer prompt``: what the model is told, as it is told it, and the hash that answers carry for it."""

from __future__ import annotations

import sys

from pydantic import BaseModel, ConfigDict
from rich.console import Console

from serving.answer import prompt
from serving.answer.policy import GrammarMode


class PromptOut(BaseModel):
    """The prompt of a configuration. ``user`` has ``{passages}`` and ``{question}`` where a request's go."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    user: str
    version: str


def prompt_of(mode: GrammarMode) -> PromptOut:
    system, user = prompt.templates(as_json=mode is GrammarMode.STRUCTURED)
    return PromptOut(system=system, user=user, version=prompt.version())


def show(mode: GrammarMode, *, as_json: bool) -> None:
    """Prints the prompt of a mode, for people or as JSON."""
    found = prompt_of(mode)
    if as_json:
        sys.stdout.write(found.model_dump_json(indent=2) + "\n")
        return
    console = Console(highlight=False, soft_wrap=True)
    for title, text in (("System", found.system), ("User", found.user), ("Version", found.version)):
        console.print(title, style="bold")
        console.print(text + "\n", markup=False)
