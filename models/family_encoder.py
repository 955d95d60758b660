"""Pair classification as the families of :mod:`models.families` do it, behind the methods of every pair encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM

from models.checkpoints import learned_positions
from models.encoder import PairEncoder
from models.errors import ModelUnusableError
from models.families import LAYOUTS, SUPPORTED, T5_LABELS, Family, Layout, described, resolve
from models.head_encoder import HeadEncoder
from models.laid_pairs import LaidPairTokenizer
from models.pairs import Order, PairTokenizer
from models.precision import keep_head_exact


class FamilyEncoder(PairEncoder):
    """Scores pairs in [0, 1] with a checkpoint of a family that has a layout.

    Of two labels the second is the one that counts. ``options`` are those of :class:`PairEncoder`.
    """

    exclusive = True

    def __init__(self, folder: Path, *, layout: Layout, threads: int, **options: Any) -> None:
        self._layout = layout
        super().__init__(folder, order="document_first", threads=threads, **options)

    def _reading(self, order: Order) -> PairTokenizer:
        del order
        return LaidPairTokenizer(self._tokenizer, layout=self._layout, max_tokens=self.max_tokens)

    def _load(self, folder: Path) -> int:
        super()._load(folder)
        self._positive, self._contradiction = SUPPORTED, None
        return self._narrowed()

    def _narrowed(self) -> int:
        """The family's window. DeBERTa and T5 go by how far words are apart, and have no last position."""
        return min(self._layout.window, learned_positions(self._model.config))


class T5Encoder(FamilyEncoder):
    """Scores pairs with a T5 that says yes or no: their softmax at the first step of the decoder."""

    def _load(self, folder: Path) -> int:
        try:
            model: Any = AutoModelForSeq2SeqLM.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=self._dtype
            )
        except (OSError, ValueError) as error:
            raise ModelUnusableError(f"{folder} does not load as a T5: {error}") from error
        words = model.lm_head.weight.detach()
        if len(words) <= max(T5_LABELS):
            raise ModelUnusableError(f"{folder} has {len(words)} words, too few for the two that are its labels.")
        # Of all the words that it could say only two are looked at, and in full precision.
        head = torch.nn.Linear(words.shape[1], len(T5_LABELS), bias=False)
        head.weight = torch.nn.Parameter(words[list(T5_LABELS)].float(), requires_grad=False)
        model.lm_head = head
        self._model = keep_head_exact(model.eval().to(self._device))
        return self._narrowed()

    def _scores(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        start = torch.zeros_like(inputs["input_ids"][:, :1])
        logits = self._model(**inputs, decoder_input_ids=start, use_cache=False).logits[:, 0].float()
        chances: torch.Tensor = logits.softmax(-1)[:, 1:]
        return chances


def open_verifier(folder: Path, *, family: Family, base: Path | None, threads: int, **options: Any) -> PairEncoder:
    """What scores pairs of a document and a claim with the model in ``folder``, read as its ``family`` does: with its
    head ``verifier`` over ``base`` when it stands on one. ``options`` are those of :class:`PairEncoder`.

    Raises :class:`~models.errors.ModelUnusableError` when the checkpoint is not of that family.
    """
    if base is not None:
        if family != "auto":
            raise ModelUnusableError(
                f"{folder.name} holds heads over another model, and says how they read: set models.verifier.family to "
                "auto."
            )
        return HeadEncoder(folder, base=base, head="verifier", threads=threads, **options)
    layout = LAYOUTS.get(resolve(family, described(folder), folder.name))
    if layout is None:
        return PairEncoder(folder, order="document_first", threads=threads, **options)
    made = T5Encoder if layout.task == "ForConditionalGeneration" else FamilyEncoder
    return made(folder, layout=layout, threads=threads, **options)
