"""``python -m finetune JOB --config FILE [--set key=value]``: trains what the product serves.

``python -m finetune release JOB RUN`` ships the weights of a run that does better than the shipped ones.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from finetune import jobs, release
from finetune.errors import JobError
from finetune.home import home
from finetune.run import Run, digest, write_json
from finetune.settings import JobSettings, load
from finetune.training import say
from models.catalog import Catalog
from serving.answer.errors import AnswerError


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return release.main(arguments[1:]) if arguments[:1] == ["release"] else _run(_parsed(arguments))
    except (JobError, AnswerError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m finetune", description=__doc__)
    parser.add_argument("job", choices=sorted(jobs.JOBS))
    parser.add_argument("--config", type=Path, required=True, help="a file such as configs/finetune/citation.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting")
    parser.add_argument("--data", type=Path, help="what relative names of data files are relative to")
    parser.add_argument("--output", type=Path, help="the run's folder (default: one named by settings and data)")
    parser.add_argument(
        "--submit",
        metavar="ADDRESS",
        help="run it as a Ray Job: http://HOST:8265, or auto for a Ray cluster on this machine",
    )
    parser.add_argument("--check-data", action="store_true", help="read and count the data, train nothing")
    return parser.parse_args(arguments)


def _run(given: argparse.Namespace) -> int:
    job = jobs.JOBS[given.job]
    root = [f"data_root={given.data.absolute()}"] if given.data else []
    settings = load(job.settings, given.config, [*given.set, *root])
    if given.submit:
        return _submit(given, settings)
    inputs = job.read(settings)
    described = {one.reference: one.describe() for one in inputs.all}
    for one in inputs.all:
        say(f"{one.reference}: {len(one.rows)} rows" + (f", {len(one.bad)} left out" if one.bad else ""))
        for reason, count in Counter(bad.message for bad in one.bad).most_common(3):
            say(f"  {count} x {reason}; the first at line {next(b.line for b in one.bad if b.message == reason)}")
    if given.check_data:
        say(job.preview(settings, inputs))
        return 0
    storage = settings.cluster.storage or home() / "finetune"
    folder = given.output or storage / f"{given.job}-{digest(settings, described)}"
    run = Run.open(given.job, folder, settings, described)
    command = shlex.join(["python", "-m", "finetune", given.job, "--config", *_told(given)])
    write_json(folder / "given.json", {"command": command, "settings": settings.model_dump(mode="json")})
    if run.finished and (folder / ("metrics.json" if settings.has_held_out else "README.md")).exists():
        say(f"{folder} is finished: remove it to train again, or change a setting")
        return 0
    base = Catalog(home()).locate(settings.base, progress=say)
    say(f"run {folder}")
    bad = [{"file": str(row.file), "line": row.line, "why": row.message} for one in inputs.all for row in one.bad]
    write_json(folder / "bad_rows.json", bad)
    if not run.finished:
        _train(run, settings, inputs, base)
    say(f"weights in {run.weights}")
    judged = job.judge(settings, run.weights, base) if settings.has_held_out else None
    release.describe(run, settings, judged, folder)
    return 0


def _told(given: argparse.Namespace) -> list[str]:
    """What a reader types after ``--config`` to have the same run: no folder of this machine is in it."""
    changes = [part for change in given.set for part in ("--set", change)]
    return [f"configs/finetune/{given.config.name}", *(["--data", "FOLDER"] if given.data else []), *changes]


def _train(run: Run, settings: JobSettings, inputs: Any, base: Path) -> None:
    """Here, as a plain process, or on the workers of a cluster."""
    job = jobs.JOBS[run.job]
    if settings.cluster.workers > 1 and not job.shared:
        raise JobError(f"{run.job} is trained by one worker: set cluster.workers to 1")
    if not settings.cluster.under_ray:
        with run.held():
            if not run.finished:
                job.train(run, settings, inputs, base)
        return
    from finetune import cluster  # noqa: PLC0415 (Ray is needed only here)

    cluster.train(run, settings, inputs, base)


def _submit(given: argparse.Namespace, settings: JobSettings) -> int:
    from finetune import submitting  # noqa: PLC0415 (Ray is needed only here)

    order = submitting.Order(given.job, settings, output=given.output, check_data=given.check_data)
    return submitting.submit(order, given.submit)


if __name__ == "__main__":
    sys.exit(main())
