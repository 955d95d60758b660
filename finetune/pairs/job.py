"""The jobs ``verifier``, ``reranker``, ``relevance`` and, for all three over one encoder, ``encoder``."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from finetune import data
from finetune.data import Input
from finetune.errors import JobError
from finetune.pairs import bearing, claiming, ranking
from finetune.pairs.calibrating import calibrate
from finetune.pairs.classifier import Classifier
from finetune.pairs.encoding import collate, encoded, loss
from finetune.pairs.groups import RELEVANCE, RERANKER, VERIFIER, Group
from finetune.pairs.settings import PairSettings
from finetune.run import Run
from finetune.training import fit, grouped, prepare, say
from models import pair_heads
from models.fingerprint import fingerprint
from models.heads_config import HeadsConfig
from models.pair_heads import PairHeads
from serving.answer.types import Passage


class PairInputs:
    """The rows that the job is given, read and counted."""

    def __init__(self, settings: PairSettings) -> None:
        given, root = settings.data, settings.data_root
        self.claims = data.grounding(given.claims, root)
        self.passages = data.corpus(given.passages, root)
        self.questions = data.qa(given.questions, root)
        self.ranked = data.rerank(given.ranked, root)
        self.facts = data.corpus(given.facts, root)
        if not self.all:
            raise JobError("data: name at least one file, e.g. --set data.claims=[grounding/fm2.train.jsonl.gz]")

    @property
    def all(self) -> list[Input[Any]]:
        return [*self.claims, *self.passages, *self.questions, *self.ranked, *self.facts]


def build(settings: PairSettings, inputs: PairInputs) -> list[Group]:
    """The groups of all tasks, in no order; the same for the same settings and rows."""
    rng = random.Random(settings.seed)  # noqa: S311 (repeatable, and nothing to guard)
    makers = {VERIFIER: _claims, RERANKER: _ranked, RELEVANCE: _bearing}
    found = [group for task in settings.tasks for group in makers[task](settings, inputs, rng)]
    if not found:
        raise JobError(f"data: nothing of it teaches {', '.join(settings.tasks)}")
    return found


def _claims(settings: PairSettings, inputs: PairInputs, rng: random.Random) -> Iterator[Group]:
    words = settings.document_words
    for given in inputs.claims:
        name = Path(given.reference).name.partition(".")[0]
        yield from [*claiming.from_labels(given.rows, words, name)] * settings.claim_repeats
    for questions in inputs.questions:
        yield from claiming.from_answers(questions.rows, words, rng)
    passages = list(dict.fromkeys(_passages(inputs)))
    yield from claiming.from_passages(passages, settings.made_claims, words, rng, "passages")


def _passages(inputs: PairInputs) -> Iterator[Passage]:
    for corpus in inputs.passages:
        for row in corpus.rows:
            if len(row.text.split()) >= 12:
                yield Passage(id="", title=row.title, heading_path=tuple(row.heading_path), text=row.text)
    for questions in inputs.questions:
        for asked in questions.rows:
            yield from (Passage(id="", title=passage.title, text=passage.text) for passage in asked.passages)
    for ranked in inputs.ranked:
        for query in ranked.rows:
            right = (passage for passage in query.passages if passage.relevance > 0)
            yield from (Passage(id="", title=passage.title, text=passage.text) for passage in right)


def _ranked(settings: PairSettings, inputs: PairInputs, rng: random.Random) -> Iterator[Group]:
    for ranked in inputs.ranked:
        name = Path(ranked.reference).name.partition(".")[0]
        yield from ranking.from_ranked(ranked.rows, settings.negatives, settings.document_words, rng, name)
    for questions in inputs.questions:
        yield from ranking.from_sentences(questions.rows, settings.negatives, rng)


def _bearing(settings: PairSettings, inputs: PairInputs, rng: random.Random) -> Iterator[Group]:
    for questions in inputs.questions:
        yield from bearing.from_questions(questions.rows, rng)
    for ranked in inputs.ranked:
        yield from bearing.from_ranked(ranked.rows, rng)
    yield from bearing.from_facts([row for facts in inputs.facts for row in facts.rows], settings.made_facts, rng)


def describe(groups: Sequence[Group]) -> str:
    counts = Counter[tuple[str, str]]()
    right = Counter[tuple[str, str]]()
    for group in groups:
        counts[group.task, group.kind] += len(group.rows)
        right[group.task, group.kind] += sum(row.label for row in group.rows)
    return ", ".join(f"{task} {kind} {right[task, kind]} of {n}" for (task, kind), n in sorted(counts.items()))


def preview(settings: PairSettings, inputs: PairInputs) -> str:
    groups = build(settings, inputs)
    return f"{sum(len(group.rows) for group in groups)} rows, right ones of all: {describe(groups)}"


def train(run: Run, settings: PairSettings, inputs: PairInputs, folder: Path) -> None:
    """Trains heads on the encoder in ``folder`` and saves them as the run's weights."""
    prepare(settings)
    groups = build(settings, inputs)
    say(f"{sum(len(group.rows) for group in groups)} rows, right ones of all: {describe(groups)}")
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    examples = list(encoded(groups, tokenizer, settings.tasks, settings.window, settings.shape))
    examples = grouped(examples, lambda one: one.longest, batch=settings.batch_size, seed=settings.seed)
    say(f"{sum(len(row['input_ids']) for one in examples for row in one.rows)} tokens")
    whole = settings.shape == "classifier"
    model = Classifier(folder) if whole else pair_heads.fresh(folder, settings.tasks, settings.width)
    fit(
        run,
        settings,
        model,
        examples,
        collate=partial(collate, padding=int(tokenizer.pad_token_id)),
        loss=partial(loss, ranking=settings.ranking_weight, dtype=settings.dtype),
    )
    with run.writing_weights() as weights:
        if whole:  # heads read with their base's tokenizer
            tokenizer.save_pretrained(weights)
        save(model, settings, folder, weights)
        calibrate(settings, weights, folder)


def save(model: Classifier | PairHeads, settings: PairSettings, base: Path, folder: Path) -> None:
    if isinstance(model, Classifier):
        model.save(folder)
        return
    config = HeadsConfig(settings.base, fingerprint(base), settings.tasks, settings.width, settings.served_window, {})
    pair_heads.save(model, config, folder)
