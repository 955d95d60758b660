"""How ``--help`` teaches: examples that run, and where to go next."""

from __future__ import annotations

EXAMPLES = "Examples:"


def epilog(*examples: tuple[str, str], after: str) -> str:
    """The end of a command's help: ``examples`` are commands, each with what it does, and ``after`` names what is next.

    An example and its meaning take a line each, since a page is 80 columns wide.
    """
    shown = "\n".join(f"  $ {command}\n      {meaning}" for command, meaning in examples)
    return f"{EXAMPLES}\n{shown}\n\n{after}"
