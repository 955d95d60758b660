"""Where a job keeps things when it is not told otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Where models and runs are kept: as the product's settings have it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ANSWER_HOME") or cache / "openindex-answer")
