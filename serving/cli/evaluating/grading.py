"""The grader: an entailment model that is not the one which gates answers, asked once for every pair it must judge."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

from models.catalog import Catalog, fingerprint
from serving.answer.seams import Pair as Question
from serving.answer.types import Deadline
from serving.cli.console import Steps
from serving.cli.evaluating.cache import OutputCache, key_of
from serving.cli.evaluating.errors import EvaluationError
from serving.evaluation.judgements import Pair, Table
from serving.evaluation.report import Grader
from serving.settings import Settings

AT_ONCE = 16
TIMEOUT_S = 600.0
_KIN = ("model_type", "hidden_size", "num_hidden_layers", "vocab_size")


def choose_grader(
    settings: Settings, reference: str | None, *, threshold: float, kin: bool
) -> tuple[Grader, Path | None]:
    """Who judges, and where its weights lie; without a reference, strings and labels do.

    Raises :class:`EvaluationError` for the gate's own model, and for one of its kin unless ``kin`` owns up to it.
    """
    if reference is None:
        return Grader(name="reference strings and labels", kind="reference"), None
    catalog = Catalog(settings.home)
    folder = catalog.locate(reference)
    gate = settings.models.verifier.model if settings.models.verifier.kind == "pair" else None
    gate_folder = catalog.locate(gate) if gate else None
    is_kin = gate_folder is not None and _shape(folder) == _shape(gate_folder)
    if gate_folder is not None and fingerprint(folder) == fingerprint(gate_folder):
        raise EvaluationError(
            f"{reference} is the model that gates the answers, and must not grade them; name another with --grader, or "
            "leave it out to judge by reference strings and labels"
        )
    if is_kin and not kin:
        raise EvaluationError(
            f"{reference} is of the gate model's kin (the same architecture, sizes and vocabulary) and flatters it; "
            "name another with --grader, or add --kin to grade with it and have every table say so"
        )
    name = f"{folder.name}@{fingerprint(folder)}"
    return Grader(name=name, kind="nli", kin=is_kin, threshold=threshold), folder


def _shape(folder: Path) -> tuple[object, ...]:
    """What two models trained from one base have in common."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return tuple(config.get(name) for name in _KIN) if config else (folder,)


async def judge(
    pairs: Iterable[Pair], grader: Grader, folder: Path, *, cache: OutputCache, steps: Steps, threads: int
) -> Table:
    """Every pair judged, from the cache where it was judged before."""
    wanted = sorted(set(pairs))
    known = {pair: score for pair in wanted if (score := cache.get(_key(grader, pair))) is not None}
    todo = [pair for pair in wanted if pair not in known]
    steps.say(f"{len(wanted)} pairs to grade, {len(known)} graded before")
    if todo:
        from models.encoder import PairEncoder
        from models.verifier import PairVerifier

        verifier = PairVerifier(PairEncoder(folder, order="document_first", threads=threads))
        try:
            for at in range(0, len(todo), AT_ONCE):
                batch = todo[at : at + AT_ONCE]
                questions = [Question(premise, claim) for premise, claim in batch]
                verdicts = await verifier.verify(questions, deadline=Deadline.after(TIMEOUT_S, time.monotonic))
                scores = {pair: verdict.score for pair, verdict in zip(batch, verdicts, strict=True)}
                cache.put({_key(grader, pair): score for pair, score in scores.items()})
                known |= scores
                steps.every(f"graded {at + len(batch)} of {len(todo)} pairs")
        finally:
            verifier.close()
    threshold = grader.threshold if grader.threshold is not None else 0.5
    return Table({pair: score >= threshold for pair, score in known.items()})


def _key(grader: Grader, pair: Pair) -> str:
    return key_of("judgement", grader.name, *pair)
