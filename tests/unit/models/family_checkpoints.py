"""Tiny, real, random checkpoints of the architectures that verifiers come in, each with a tokenizer of its kind."""

import random
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE, Unigram
from tokenizers.normalizers import Sequence as Normalizers
from tokenizers.pre_tokenizers import ByteLevel, Metaspace
from tokenizers.processors import RobertaProcessing
from tokenizers.trainers import BpeTrainer, UnigramTrainer
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    DebertaV2Tokenizer,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

WORDS = (
    "tower city river bridge market winter summer music teacher engine garden window forest letter harbour museum was "
    "is the a of in built opened closed painted near old new tall small not never and with predict choose your answer "
    "based on paragraph above can we conclude that options yes no I think"
).split()


def words(count: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def sentences(count: int, seed: int) -> str:
    """Sentences of six to fifteen words."""
    return " ".join(f"{words(6 + number % 10, seed * 1000 + number)}." for number in range(count))


_CORPUS = [sentences(20, seed) + ' Choose: "predict"?\n- Yes' for seed in range(30)]


def roberta(folder: Path, *, seed: int = 0, labels: int = 2) -> Path:
    specials = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    backend = Tokenizer(BPE())
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=500, special_tokens=specials, initial_alphabet=ByteLevel.alphabet())
    backend.train_from_iterator(_CORPUS, trainer)
    backend.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{name}_token": token for name, token in names.items()},
    )
    torch.manual_seed(seed)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=514,
        type_vocab_size=1,
        num_labels=labels,
        pad_token_id=1,
        **_SMALL,
    )
    return _saved(RobertaForSequenceClassification(config), tokenizer, folder)


def deberta(folder: Path, *, seed: int = 0) -> Path:
    vocabulary = [*_unigrams(["[PAD]", "[CLS]", "[SEP]", "[UNK]"], "[UNK]"), ("[MASK]", 0.0)]
    tokenizer = DebertaV2Tokenizer(vocab=vocabulary, unk_id=3, model_max_length=2048)
    torch.manual_seed(seed)
    config = DebertaV2Config(
        vocab_size=len(tokenizer),
        max_position_embeddings=512,
        type_vocab_size=0,
        relative_attention=True,
        position_biased_input=False,
        position_buckets=64,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        num_labels=2,
        pad_token_id=0,
        **_SMALL,
    )
    return _saved(DebertaV2ForSequenceClassification(config), tokenizer, folder)


def flan_t5(folder: Path, *, seed: int = 0, vocabulary: int = 512) -> Path:
    pieces = _unigrams(["<pad>", "</s>", "<unk>"], "<unk>")[: vocabulary - 100]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=100, model_max_length=512)
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=max(vocabulary, len(tokenizer)) if vocabulary > 209 else vocabulary,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=0,
        initializer_factor=2.0,
    )
    model = T5ForConditionalGeneration(config)
    model.lm_head.weight.data *= 0.15  # so that scores are not all 0 or 1
    return _saved(model, tokenizer, folder)


_SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.4,
}


def _unigrams(specials: list[str], unknown: str) -> list[tuple[str, float]]:
    backend = Tokenizer(Unigram())
    backend.normalizer = Normalizers([])
    backend.pre_tokenizer = Metaspace()
    backend.train_from_iterator(
        _CORPUS, UnigramTrainer(vocab_size=300, special_tokens=specials, unk_token=unknown, show_progress=False)
    )
    vocabulary = backend.get_vocab()
    ordered = sorted(vocabulary, key=vocabulary.__getitem__)
    return [(piece, 0.0 if piece in specials else -3.0 - number / 100) for number, piece in enumerate(ordered)]


def _saved(model, tokenizer, folder: Path) -> Path:  # type: ignore[no-untyped-def]  # any of the library's
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
