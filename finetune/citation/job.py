"""The citation job: a LoRA adapter that makes a causal model answer from numbered passages, cite them, and decline."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from finetune import data, workers
from finetune.citation import conversations as made
from finetune.citation.conversations import Conversation, Passages
from finetune.citation.encoding import Encoder, collate, loss
from finetune.citation.facts import Facts
from finetune.citation.settings import CitationSettings
from finetune.data import Input
from finetune.errors import JobError
from finetune.run import Run
from finetune.training import fit, grouped, prepare, say
from serving.evaluation.rows import QaRow, RerankRow

LONGEST = 4096
MISSING_SHARE = 0.2
"""Of the answerable questions, those that are asked without the passage that answers: the plain case of a decline."""


class CitationInputs:
    """The rows that the job is given, read and counted."""

    def __init__(self, settings: CitationSettings) -> None:
        given, root = settings.data, settings.data_root
        self.qa: list[Input[QaRow]] = data.qa(given.qa, root)
        self.two_hops: list[Input[RerankRow]] = data.rerank(given.two_hops, root)
        self.two_hops_qa: list[Input[QaRow]] = data.qa(given.two_hops_qa, root)
        self.facts = data.corpus(given.facts, root)
        if not (self.qa or self.two_hops or self.two_hops_qa or self.facts):
            raise JobError("data: name at least one file, e.g. --set data.qa=[qa/squad2.train.jsonl.gz]")

    @property
    def all(self) -> list[Input[Any]]:
        return [*self.qa, *self.two_hops, *self.two_hops_qa, *self.facts]


def build(settings: CitationSettings, inputs: CitationInputs) -> list[Conversation]:
    """The conversations, in the order they are learned from; the same for the same settings and rows."""
    rng = random.Random(settings.seed)  # noqa: S311 (repeatable, and nothing to guard)
    qa = [row for given in inputs.qa for row in given.rows]
    hops: list[RerankRow | QaRow] = [row for given in inputs.two_hops for row in given.rows]
    hops += [row for given in inputs.two_hops_qa for row in given.rows]
    pool = list(made.all_passages([*qa, *hops]))
    passages = Passages(
        rng,
        pool,
        most=settings.most_passages,
        words=(min(settings.least_passage_words, settings.passage_words), settings.passage_words),
    )
    found = [one for row in qa if (one := _from_qa(row, passages, rng))]
    found += [one for row in hops if (one := made.from_two_hops(row, passages))]
    facts = Facts([row for given in inputs.facts for row in given.rows], rng, most=settings.most_passages)
    found += [*facts.single(settings.facts), *facts.dated(settings.facts // 2), *facts.compared(settings.facts // 2)]
    return _balanced(found, settings, rng)


def _from_qa(row: QaRow, passages: Passages, rng: random.Random) -> Conversation | None:
    if row.answerable and rng.random() < MISSING_SHARE:
        return made.without_its_passage(row, passages)
    return made.from_qa(row, passages)


def _balanced(found: Sequence[Conversation], settings: CitationSettings, rng: random.Random) -> list[Conversation]:
    """At most ``most_conversations``, of which ``decline_share`` decline, as far as there are so many."""
    declines = [one for one in found if one.declines]
    answers = [one for one in found if not one.declines]
    rng.shuffle(declines)
    rng.shuffle(answers)
    most = min(settings.most_conversations, len(found))
    wanted = min(len(declines), int(most * settings.decline_share))
    chosen = [*declines[:wanted], *answers[: most - wanted]]
    rng.shuffle(chosen)
    return chosen


def describe(conversations: Sequence[Conversation]) -> str:
    counts = Counter(one.kind for one in conversations)
    return ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(counts.items()))


def preview(settings: CitationSettings, inputs: CitationInputs) -> str:
    conversations = build(settings, inputs)
    return f"{len(conversations)} conversations: {describe(conversations)}"


def train(run: Run, settings: CitationSettings, inputs: CitationInputs, folder: Path) -> None:
    """Trains on the base model in ``folder`` and saves the adapter as the run's weights."""
    prepare(settings)
    conversations = build(settings, inputs)
    say(f"{len(conversations)} conversations: {describe(conversations)}")
    encoder = Encoder(folder)
    encoded = encoder.encode_all(conversations, seed=settings.seed, longest=LONGEST)
    encoded = grouped(encoded, lambda one: len(one.prompt), batch=settings.batch_size, seed=settings.seed)
    tokens = sum(len(one.prompt) + len(one.reply) for one in encoded)
    say(f"{tokens} tokens, of which {sum(len(one.reply) for one in encoded)} are learned")
    model = _model(folder, settings)
    learned = fit(
        run,
        settings,
        model,
        encoded,
        collate=partial(collate, pad=encoder.pad),
        loss=partial(loss, held_above=settings.held_above_tokens),
    )
    if workers.is_first():
        with run.writing_weights() as weights:
            save(model, weights, learned)


def _model(folder: Path, settings: CitationSettings) -> PeftModel:
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise JobError("device: no GPU is visible here; set device to cpu, or run on a machine with one")
    quantised: dict[str, Any] = _four_bits() if settings.quantise else {}
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, settings.dtype), **quantised)
    lora = settings.lora
    return get_peft_model(
        base,
        LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        ),
    )


def _four_bits() -> dict[str, Any]:
    """Arguments that load a base in four bits, as QLoRA has it, each worker on its own GPU."""
    if importlib.util.find_spec("bitsandbytes") is None:
        raise JobError("quantise needs bitsandbytes: pip install 'openindex-answer[qlora]', or set quantise to false")
    config: Any = BitsAndBytesConfig
    how = config(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    return {"quantization_config": how, "device_map": {"": torch.cuda.current_device()}}


def save(model: PeftModel, folder: Path, learned: Mapping[str, torch.Tensor]) -> None:
    """The adapter in half precision: a few megabytes, with no word of the machine it was trained on.

    ``learned`` is the model's state; what of it is the adapter's is saved.
    """
    model.peft_config["default"].base_model_name_or_path = None
    halves = {name: tensor.half() for name, tensor in learned.items() if "lora_" in name}
    model.save_pretrained(folder, state_dict=halves)
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's own; the run writes the card
