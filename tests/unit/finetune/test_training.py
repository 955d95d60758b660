"""The order of what is learned, and what a base model in four bits needs."""

from __future__ import annotations

import importlib.util
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from finetune import training, workers
from finetune.citation import job
from finetune.errors import JobError
from finetune.settings import JobSettings
from finetune.training import filled, grouped, whole


@given(st.lists(st.integers(), min_size=1, max_size=40), st.integers(1, 9))
def test_every_batch_is_whole_and_begins_as_it_was(examples: list[int], batch: int) -> None:
    found = filled(examples, batch=batch)
    assert len(found) % batch == 0
    assert len(found) - len(examples) < batch
    assert found[: len(examples)] == examples
    assert set(found) == set(examples)


@given(st.lists(st.integers(), min_size=1, max_size=20), st.integers(1, 5), st.integers(1, 3), st.floats(0.1, 4))
def test_a_run_has_its_steps_and_no_more(examples: list[int], batch: int, accumulate: int, epochs: float) -> None:
    settings = JobSettings(base="path:x", batch_size=batch, accumulate=accumulate, epochs=epochs)
    a_step = batch * accumulate
    an_epoch = -(-len(examples) // a_step)
    found = whole(examples, settings)
    assert len(found) == math.ceil(epochs * an_epoch) * a_step
    assert found == [filled(examples, batch=a_step)[at % (an_epoch * a_step)] for at in range(len(found))]
    assert len(whole(examples, settings.model_copy(update={"max_steps": 7}))) == 7 * a_step


@given(st.lists(st.integers(0, 99), max_size=60), st.integers(1, 7), st.integers(0, 9))
def test_grouping_only_reorders(lengths: list[int], batch: int, seed: int) -> None:
    found = grouped(lengths, lambda one: one, batch=batch, seed=seed, window=2)
    assert sorted(found) == sorted(lengths)
    assert found == grouped(lengths, lambda one: one, batch=batch, seed=seed, window=2)


def test_four_bits_without_bitsandbytes_name_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JobError, match=r"openindex-answer\[qlora\]"):
        job._four_bits()


def test_the_workers_loss_is_the_mean_over_all_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers with 3 and 1 labels: averaged as DDP does it, their losses make the mean over the four."""
    monkeypatch.setattr(workers, "count", lambda: 2)
    monkeypatch.setattr(workers, "total", lambda _value: torch.tensor(4))
    trainer = object.__new__(training._LossTrainer)
    losses = []
    for each, labels in (([1.0, 2.0, 3.0], [5, 5, 5]), ([10.0], [5, training.IGNORED])):
        trainer._loss = lambda _model, _batch, each=each: torch.tensor(each).mean()
        losses.append(trainer.compute_loss(torch.nn.Identity(), {"labels": torch.tensor(labels)}))
    assert float(sum(losses) / 2) == pytest.approx(16 / 4)
