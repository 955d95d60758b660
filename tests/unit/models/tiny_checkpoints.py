"""Tiny, real, random checkpoints, made here: a BERT pair classifier and its WordPiece tokenizer."""

from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

WORDS = "alpha beta gamma delta fox dog runs sleeps the a over lazy quick moon sun is not".split()
WINDOW = 64


def tokenizer() -> PreTrainedTokenizerFast:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [prefix + letter for prefix in ("", "##") for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    pieces = dict.fromkeys([*specials, ".", "!", "?", ",", *letters, *WORDS])
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = BertNormalizer()
    backend.pre_tokenizer = BertPreTokenizer()
    backend.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=WINDOW,
    )


def pair_classifier(folder: Path, *, labels: dict[int, str], seed: int = 0) -> Path:
    """Saves a classifier with two layers and large random weights, so that scores differ clearly."""
    torch.manual_seed(seed)
    words = tokenizer()
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=WINDOW,
        initializer_range=0.4,
        id2label=labels,
        label2id={name: number for number, name in labels.items()},
    )
    BertForSequenceClassification(config).eval().save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
