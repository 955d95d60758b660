"""Submits a job to a Ray cluster as a Ray Job, follows its log, and says how it ended.

The settings travel resolved, and the code that submits with them: what runs there is what would have run here. Data,
base model and run folder are the cluster's own: paths must be the same on its nodes as here.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import requests
import yaml
from ray.job_submission import JobStatus, JobSubmissionClient

import finetune
import models
import serving
from finetune.errors import JobError
from finetune.settings import JobSettings, parse
from finetune.training import say

CODE = (finetune, models, serving)
FILE = "job.yaml"
ADDRESS = "RAY_API_SERVER_ADDRESS"
"""Ray's own variable, which wins over an address that is given. So does ``RAY_ADDRESS``, where this is not set."""
POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run: a job with its settings, as ``python -m finetune`` would."""

    job: str
    settings: JobSettings
    output: Path | None = None
    check_data: bool = False

    def tree(self) -> dict[str, Any]:
        """The settings as the cluster is given them. Raises :class:`JobError` for what means nothing elsewhere."""
        kind, _, folder = self.settings.base.partition(":")
        if kind == "path" and not Path(folder).is_absolute():
            raise JobError(f"base {self.settings.base}: give the model's absolute path, as the cluster's nodes see it")
        tree = self.settings.model_dump(mode="json")
        tree["data_root"] = str((self.settings.data_root or Path()).absolute())
        tree["cluster"]["ray"] = True  # its workers' resources are then the cluster's to give
        if self.settings.cluster.storage:
            tree["cluster"]["storage"] = str(self.settings.cluster.storage.absolute())
        return parse(type(self.settings), tree).model_dump(mode="json")

    def command(self) -> str:
        """The shell command, for the cluster's Python where this one is not there too."""
        words = ["-m", "finetune", self.job, "--config", FILE]
        words += ["--output", str(self.output.absolute())] if self.output else []
        words += ["--check-data"] if self.check_data else []
        return f'"$(command -v {shlex.quote(sys.executable)} || echo python)" {shlex.join(words)}'


def submit(order: Order, address: str) -> int:
    """Runs ``order`` on the cluster at ``address`` and follows it to its end: 0 when it succeeded, else 1.

    Raises :class:`JobError` when the cluster cannot be reached or does not take the job. Ctrl-C stops following, not
    the job.
    """
    tree = order.tree()
    client = _client(address)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_text(yaml.safe_dump(tree))
        try:
            name = client.submit_job(entrypoint=order.command(), runtime_env=_environment(folder))
        except (RuntimeError, ValueError, requests.RequestException) as error:
            raise JobError(f"the cluster at {address} did not take the job: {error}") from error
    say(f"submitted {name}")
    try:
        return _follow(client, name)
    except KeyboardInterrupt:
        say(f"{name} goes on; `ray job logs -f {name}` follows it, `ray job stop {name}` ends it")
        return 130


def _client(address: str) -> JobSubmissionClient:
    if address != "auto":
        os.environ[ADDRESS] = address
    try:
        return JobSubmissionClient(address)
    except (ConnectionError, requests.RequestException) as error:
        raise JobError(
            f"no Ray cluster answers at {address}: give the address of its dashboard, such as http://HOST:8265, or "
            "`ray start --head` here and give auto"
        ) from error
    except (RuntimeError, ValueError) as error:
        raise JobError(
            f"{address} is no address of a Ray dashboard ({error}): give one such as http://HOST:8265"
        ) from error


def _environment(folder: str) -> dict[str, Any]:
    code = [str(Path(str(package.__file__)).parent) for package in CODE]
    return {"working_dir": folder, "py_modules": code, "excludes": ["__pycache__"]}


def _follow(client: JobSubmissionClient, name: str) -> int:
    try:
        asyncio.run(_print_log(client, name))
        while not (status := client.get_job_status(name)).is_terminal():
            time.sleep(POLL_S)
    except (RuntimeError, OSError, aiohttp.ClientError) as error:
        raise JobError(
            f"lost touch with the cluster ({error}); {name} may go on: `ray job status {name}` says"
        ) from error
    say(f"{name} {status.value.lower()}")
    return 0 if status == JobStatus.SUCCEEDED else 1


async def _print_log(client: JobSubmissionClient, name: str) -> None:
    async for text in client.tail_job_logs(name):
        sys.stderr.write(text)
        sys.stderr.flush()
