"""What all unit tests share: Hypothesis without a clock, and logging that each test leaves as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine is no fault of the code.
settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A deployment makes its process log where Serve logs: the tests' process gets back what it had."""
    parents = {name: logging.getLogger(name).parent for name in ("serving", "models", "vllm")}
    factory = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)
    for name, parent in parents.items():
        logger = logging.getLogger(name)
        logger.parent = parent
        logger.setLevel(logging.NOTSET)  # forgets what the parent before had decided
