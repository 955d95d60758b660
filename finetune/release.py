"""``python -m finetune release JOB RUN``: better weights take the place of the shipped ones."""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from finetune import jobs
from finetune.card import card
from finetune.errors import JobError
from finetune.home import home
from finetune.judging import Judgement, better
from finetune.run import Run, write_json, write_text
from finetune.settings import JobSettings, parse
from finetune.training import say
from models.catalog import ADAPTERS, Catalog
from models.weights import content_hash
from serving.evaluation.estimates import Difference

LARGEST = 25 * 2**20
"""Bytes of all files of a job's weights: they travel with the code."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m finetune release", description=__doc__)
    parser.add_argument("job", choices=sorted(jobs.JOBS))
    parser.add_argument("run", help="a finished run: its folder, or its name under HOME/finetune")
    parser.add_argument(
        "--data", type=Path, help="what relative names of held-out files are relative to, if not as then"
    )
    parser.add_argument(
        "--to", type=Path, default=ADAPTERS, help="where shipped weights lie (default: models/adapters)"
    )
    given = parser.parse_args(arguments)
    run = find(given.job, given.run)
    settings = settings_of(run, given.data)
    job = jobs.JOBS[given.job]
    base = Catalog(home()).locate(settings.base, progress=say)
    target: Path = given.to / given.job
    shipped = target if target.is_dir() else None
    ours = job.judge(settings, run.weights, base)
    theirs = job.judge(settings, shipped, base)
    gain = better(ours, theirs)
    against = f"the shipped {content_hash(shipped)}" if shipped else "what is served without weights"
    say(f"{ours.decides}: {told(gain)} than {against}")
    if gain.low is None or gain.low <= 0:
        raise JobError(f"not released: in {ours.decides} it is {told(gain)} than {against}, which is not surely better")
    release(run, settings, ours, gain, against=content_hash(shipped) if shipped else None, target=target)
    say(f"released to {target}: {content_hash(target)}")
    return 0


def find(job: str, name: str) -> Run:
    """The finished run in the folder ``name``, or of that name under the home. Raises :class:`JobError`."""
    folders = (Path(name), home() / "finetune" / name)
    folder = next((one for one in folders if (one / "settings.json").is_file()), None)
    if folder is None:
        raise JobError(f"there is no run at {' or '.join(map(str, folders))}: give the folder that training named")
    run = Run(job, folder)
    trained = json.loads((folder / "settings.json").read_text())["job"]
    if trained != job:
        raise JobError(f"{folder} is a run of {trained}, not of {job}")
    if not run.finished:
        raise JobError(f"{folder} is not finished: give its command again, it goes on from the last checkpoint")
    return run


def settings_of(run: Run, data_root: Path | None) -> JobSettings:
    """The settings that the run was given last, over other data when ``data_root`` says so."""
    tree = json.loads((run.folder / "given.json").read_text())["settings"]
    if data_root is not None:
        tree["data_root"] = str(data_root)
    return parse(jobs.JOBS[run.job].settings, tree)


def release(
    run: Run, settings: JobSettings, judged: Judgement, gain: Difference, *, against: str | None, target: Path
) -> None:
    """Puts the run's weights, their metrics and card in the place of what is in ``target``, in one step."""
    size = sum(path.stat().st_size for path in run.weights.rglob("*") if path.is_file())
    if size > LARGEST:
        raise JobError(f"{run.weights} holds {size} bytes, and at most {LARGEST} are shipped: train a smaller adapter")
    compared = {
        "decides": judged.decides,
        "against": against,
        "gain": gain.value,
        "ci95": [gain.low, gain.high],
        "p": gain.p,
    }
    judged = replace(judged, reported={**judged.reported, "bytes": size, "compared": compared})
    target.parent.mkdir(parents=True, exist_ok=True)
    aside, old = target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.old")
    for left in (aside, old):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(run.weights, aside)
    describe(run, settings, judged, aside)
    if target.exists():
        target.rename(old)
    aside.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def describe(run: Run, settings: JobSettings, judged: Judgement | None, folder: Path) -> None:
    """Writes ``metrics.json`` and the card, ``README.md``, into ``folder``."""
    metrics: dict[str, Any] | None = judged.metrics() if judged else None
    if metrics is not None:
        write_json(folder / "metrics.json", metrics)
    text = card(
        run.job,
        jobs.JOBS[run.job].purpose,
        settings=settings,
        command=json.loads((run.folder / "given.json").read_text())["command"],
        data=json.loads((run.folder / "data.json").read_text()),
        weights=content_hash(run.weights),
        metrics=metrics,
    )
    write_text(folder / "README.md", text)


def told(gain: Difference) -> str:
    """A difference in words: how much, how sure."""
    if gain.value is None:
        return "not comparable"
    ends = "" if gain.low is None or gain.high is None else f" [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
    return f"{100 * gain.value:+.1f} points{ends} (n {gain.n})"
