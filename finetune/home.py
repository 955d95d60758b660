"""Where a job finds models and keeps its runs: where the product has its home, whose settings no job may read."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """``ANSWER_HOME``, else ``openindex-answer`` in the user's cache folder. Absolute."""
    named = os.environ.get("ANSWER_HOME")
    if named:
        return Path(os.path.expanduser(named)).absolute()  # Path.expanduser raises for a user it cannot find
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative one is to be ignored, says the XDG base directory specification.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "openindex-answer"
