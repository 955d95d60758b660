"""``python -m finetune JOB --config FILE [--set key=value]``: trains what the product serves."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from finetune import jobs
from finetune.errors import JobError
from finetune.run import Run, digest, write_json
from finetune.settings import load
from finetune.training import say
from models.catalog import Catalog


def home() -> Path:
    """Where models and runs are kept: as the product's settings have it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ANSWER_HOME") or cache / "openindex-answer")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m finetune", description=__doc__)
    parser.add_argument("job", choices=sorted(jobs.JOBS))
    parser.add_argument("--config", type=Path, required=True, help="a file such as configs/finetune/citation.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting")
    parser.add_argument("--data", type=Path, help="what relative names of data files are relative to")
    parser.add_argument("--output", type=Path, help="the run's folder (default: one named by settings and data)")
    parser.add_argument("--check-data", action="store_true", help="read and count the data, train nothing")
    given = parser.parse_args(arguments)
    try:
        return _run(given)
    except JobError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130


def _run(given: argparse.Namespace) -> int:
    job = jobs.JOBS[given.job]
    root = [f"data_root={given.data.absolute()}"] if given.data else []
    settings = load(job.settings, given.config, [*given.set, *root])
    inputs = job.read(settings)
    described = {one.reference: one.describe() for one in inputs.all}
    for one in inputs.all:
        say(f"{one.reference}: {len(one.rows)} rows" + (f", {len(one.bad)} left out" if one.bad else ""))
        for reason, count in Counter(bad.message for bad in one.bad).most_common(3):
            say(f"  {count} x {reason}; the first at line {next(b.line for b in one.bad if b.message == reason)}")
    if given.check_data:
        say(job.preview(settings, inputs))
        return 0
    folder = given.output or home() / "finetune" / f"{given.job}-{digest(settings, described)}"
    run = Run.open(given.job, folder, settings, described)
    if run.finished:
        say(f"{folder} is finished: remove it to train again, or change a setting")
        return 0
    say(f"run {folder}")
    bad = [{"file": str(row.file), "line": row.line, "why": row.message} for one in inputs.all for row in one.bad]
    write_json(folder / "bad_rows.json", bad)
    base = Catalog(home()).locate(settings.base, progress=say)
    job.train(run, settings, inputs, base)
    say(f"weights in {run.weights}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
