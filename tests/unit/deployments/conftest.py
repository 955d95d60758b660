"""A deployment makes its process log where Serve logs. The tests' process gets back what it had."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from serving.deployments.logs import JOINED


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    parents = {name: logging.getLogger(name).parent for name in JOINED}
    factory = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)
    for name, parent in parents.items():
        logger = logging.getLogger(name)
        logger.parent = parent
        logger.setLevel(logging.NOTSET)  # forgets what the parent before had decided
