# ruff: noqa: ARG002 (the Trainer calls its callbacks with more than they use)
"""Training with transformers' Trainer, as every job does it: repeatable, watched, and safe to kill.

A run that is killed at any moment and started again goes on from its last whole checkpoint, with the optimizer, the
order of the data and the random states of that moment, and ends with the weights that it would have had.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from finetune import workers
from finetune.run import COMPLETE, Run
from finetune.settings import JobSettings

E = TypeVar("E")
Loss = Callable[[torch.nn.Module, dict[str, Any]], torch.Tensor]
"""The mean loss of a batch, which is what ``collate`` made of some examples: over those of its labels that count."""
IGNORED = -100
"""The label of what is not learned."""


def say(message: str) -> None:
    """To whoever watches; of several workers the first one speaks."""
    if workers.is_first():
        print(message, file=sys.stderr, flush=True)


class Examples(Dataset[Any]):
    """A list of examples, as the Trainer wants it."""

    def __init__(self, examples: Sequence[Any]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, at: int) -> Any:
        return self._examples[at]


class _LossTrainer(Trainer):
    """A Trainer whose loss is a function of ours, a mean over the batches of all workers."""

    def __init__(self, *args: Any, loss: Loss, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._loss = loss
        # The loss is a mean: the Trainer divides it by the batches of a step, and must not do so by their tokens.
        self.model_accepts_loss_kwargs = False

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        loss = self._loss(model, inputs)
        if workers.count() > 1:
            # Workers' gradients are averaged as if each had as many labels: made good here.
            labels = (inputs["labels"] != IGNORED).sum()
            loss = loss * labels * workers.count() / workers.total(labels).clamp(min=1)
        return (loss, None) if return_outputs else loss


def prepare(settings: JobSettings) -> None:
    """Seeds everything and sets the threads. Before the model is made: its new weights are random."""
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    set_seed(settings.seed)


def grouped(examples: Sequence[E], length: Callable[[E], int], *, batch: int, seed: int, window: int = 16) -> list[E]:
    """The examples in an order in which those of a batch have about one length, and batches come in random order.

    Sorted inside windows of ``window`` batches: what pads least, and still mixes what is learned together.
    """
    rng = random.Random(seed)  # noqa: S311 (repeatable, and nothing to guard)
    mixed = list(examples)
    rng.shuffle(mixed)
    size = batch * window
    batches: list[list[E]] = []
    for start in range(0, len(mixed), size):
        near = sorted(mixed[start : start + size], key=length)
        batches += [near[at : at + batch] for at in range(0, len(near), batch)]
    last = [one for one in batches if len(one) < batch]
    whole = [one for one in batches if len(one) == batch]
    rng.shuffle(whole)
    return [example for one in (*whole, *last) for example in one]


def filled(examples: Sequence[E], *, batch: int) -> list[E]:
    """The examples, the last batch filled up with the first ones: workers can share whole batches alone."""
    missing = -len(examples) % batch
    return [*examples, *itertools.islice(itertools.cycle(examples), missing)]


def whole(examples: Sequence[E], settings: JobSettings) -> list[E]:
    """The examples of all steps of a run, one after another; the last batch of an epoch is filled up as above.

    Nothing is left of a run that is resumed at its end. In the middle of an epoch the Trainer would take a step more.
    """
    a_step = settings.batch_size * settings.accumulate
    epoch = filled(examples, batch=a_step)
    steps = settings.max_steps if settings.max_steps > 0 else math.ceil(settings.epochs * len(epoch) / a_step)
    return list(itertools.islice(itertools.cycle(epoch), steps * a_step))


def fit(
    run: Run,
    settings: JobSettings,
    model: torch.nn.Module,
    examples: Sequence[Any],
    *,
    collate: Callable[[list[Any]], dict[str, Any]],
    loss: Loss,
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, torch.Tensor]:
    """Trains ``model`` in place on ``examples``, in their order, from the run's last checkpoint if it has one.

    Returns what was learned: the model's state, whole at the first worker, which is the one to save it.
    """
    last = workers.agreed(_begin(run) if workers.is_first() else None)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(run.folder / "tensorboard")
    trainer = _LossTrainer(
        model=model,
        args=arguments(run, settings),
        train_dataset=Examples(whole(examples, settings)),
        data_collator=collate,
        callbacks=[Watch(run), Sealed(), *callbacks],
        loss=loss,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    state: dict[str, torch.Tensor] = trainer.accelerator.get_state_dict(trainer.model)
    return state


def _begin(run: Run) -> Path | None:
    """The checkpoint to go on from; what was logged after it is forgotten."""
    last = run.last_checkpoint()
    step = int(last.name.rpartition("-")[2]) if last else 0
    run.forget_after(step)
    if last:
        say(f"going on from step {step}")
    return last


def arguments(run: Run, settings: JobSettings) -> TrainingArguments:
    """What the Trainer is told. Each worker takes its share of every batch, in the order of the examples."""
    cpu = settings.device == "cpu"
    return TrainingArguments(
        output_dir=str(run.checkpoints),
        seed=settings.seed,
        data_seed=settings.seed,
        num_train_epochs=1,  # the examples are those of all epochs
        per_device_train_batch_size=settings.batch_size // settings.cluster.workers,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_share,  # below 1, a share of all steps
        lr_scheduler_type="cosine",
        max_grad_norm=settings.max_grad_norm,
        logging_steps=settings.log_steps,
        logging_first_step=True,
        save_strategy="steps",
        save_steps=settings.checkpoint_steps,
        save_total_limit=2,
        use_cpu=cpu,
        bf16=not cpu and settings.dtype == "bfloat16",
        dataloader_pin_memory=not cpu,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        report_to=["tensorboard"],
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
        fsdp=True if settings.cluster.fsdp else None,  # type: ignore[arg-type] # its annotation is behind its documents
    )


class Watch(TrainerCallback):
    """Writes each logged step to the run, and says it with what is left."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._began = time.monotonic()
        self._first = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._began, self._first = time.monotonic(), state.global_step

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        done = state.global_step - self._first
        rate = done / max(1e-9, time.monotonic() - self._began)
        left = (state.max_steps - state.global_step) / rate if rate > 0 else math.inf
        values = {name: float(value) for name, value in logs.items() if isinstance(value, int | float)}
        self._run.log(state.global_step, values)
        say(
            f"step {state.global_step} of {state.max_steps}: loss {values['loss']:.4f}, "
            f"{rate * 60:.1f} steps a minute, {_clock(left)} left"
        )


class Sealed(TrainerCallback):
    """Marks each checkpoint as whole once everything of it is written, by every worker."""

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
        workers.wait()
        if workers.is_first():
            os.sync()
            (folder / COMPLETE).touch()


def _clock(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    minutes = int(seconds) // 60
    return f"{minutes // 60}:{minutes % 60:02}:{int(seconds) % 60:02}"
