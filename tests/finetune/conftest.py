"""One Ray cluster for the tests of jobs: on this machine, with two workers' worth of CPUs and a dashboard."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import ray

from tests.processes import assert_ended, children


@pytest.fixture(scope="package")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the cluster's dashboard, where jobs are submitted. Nothing of the cluster is left afterwards."""
    before = children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANSWER_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")  # a lost worker is noticed as soon
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("PYTHONPATH", os.getcwd())
        context = ray.init(
            address="local",
            num_cpus=3,
            include_dashboard=True,
            object_store_memory=100 * 2**20,
            logging_level="ERROR",
        )
        try:
            yield f"http://{context.dashboard_url}"
        finally:
            ray.shutdown()
    assert_ended(children() - before)
