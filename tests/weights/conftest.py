import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def home() -> Path:
    """Where prepared weights are kept between runs: unpacking them takes half a minute."""
    return Path(os.environ.get("ANSWER_HOME", Path.home() / ".cache" / "openindex-answer"))
