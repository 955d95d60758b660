"""``answer finetune``: the jobs that train what is served, in a process of their own: nothing served needs them."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Annotated

import typer

from serving.cli.console import fail

NEEDED = ("accelerate", "datasets", "peft", "tensorboard")
"""What the extra `finetune` brings."""


def finetune(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB --config FILE ...",
            help="The job and its options: --set KEY=VALUE, --data FOLDER, --output FOLDER, --check-data, "
            "--submit ADDRESS (a Ray cluster). `answer finetune -- --help` says more of them.",
        ),
    ],
) -> None:
    """Train the weights that are served, here or on a Ray cluster. It goes on where it was stopped.

    The same as `python -m finetune`.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        fail(f"fine-tuning needs {', '.join(missing)}: pip install 'openindex-answer[finetune]'")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "finetune", *arguments])  # noqa: S606 (our own module)
