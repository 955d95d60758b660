"""The families of verifiers that others have published: what each reads, in what portions, and how it decides.

What a checkpoint was trained on is no part of it: two RoBERTas with two labels may want their texts in any order. So
the settings name the family, and this table says what follows from it. Sources: MiniCheck (Tang et al., 2024,
https://arxiv.org/abs/2404.10774, code https://github.com/Liyan06/MiniCheck) and FactCG (Lei et al., 2025,
https://arxiv.org/abs/2501.17144, code https://github.com/derenlei/FactCG), with their model cards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from models.errors import ModelUnusableError

Family = Literal[
    "auto",
    "cross_encoder",
    "nli",
    "minicheck_roberta",
    "minicheck_deberta",
    "minicheck_flan_t5",
    "factcg",
    "bespoke_minicheck",
]
"""``cross_encoder``: a classifier of pairs, document first; ``nli``: one of three labels that are named, among them an
entailment and a contradiction; ``auto``: what the checkpoint's labels say of these two. The others by their name."""

PART = "\0"
"""Where a layout has the separator: no text has this character once it is readable."""

Unit = Literal["tokens", "words"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a family puts a document and a claim into one text, and how much of a document at once.

    ``template`` has ``{document}``, ``{claim}`` and, at :data:`PART`, the special token ``separator``; the tokenizer's
    own special tokens go around it. A document is read in chunks of at most ``chunk`` ``unit``, in a window of at most
    ``window`` tokens. ``model_types`` are the architectures that it was trained on.
    """

    template: str
    separator: str | None
    window: int
    chunk: int
    unit: Unit
    model_types: tuple[str, ...]
    task: str = "ForSequenceClassification"

    def text(self, document: str, claim: str) -> str:
        # Not str.format: a document may have braces.
        head, _, rest = self.template.partition("{document}")
        middle, _, tail = rest.partition("{claim}")
        return f"{head}{document}{middle}{claim}{tail}"


SUPPORTED = 1
"""The label of two that says that the document supports the claim: MiniCheck's and FactCG's."""

T5_LABELS = (3, 209)
"""The words of Flan-T5's vocabulary that MiniCheck decides between, at the first step of the decoder: no, yes."""

LAYOUTS: Mapping[str, Layout] = {
    # MiniCheck counts tokens of the documents in these two, and words in Flan-T5's.
    "minicheck_roberta": Layout("{document}\0{claim}", "</s>", 512, 400, "tokens", ("roberta",)),
    "minicheck_deberta": Layout("{document}\0{claim}", "[SEP]", 2048, 400, "tokens", ("deberta-v2",)),
    "minicheck_flan_t5": Layout(
        "predict: {document}\0{claim}", "</s>", 2048, 500, "words", ("t5",), "ForConditionalGeneration"
    ),
    # Its authors count NLTK's word tokens, which are some more than the words between blanks that are counted here.
    "factcg": Layout(
        "{document}\n\nChoose your answer: based on the paragraph above can we conclude that "
        '"{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is ',
        None,
        2048,
        550,
        "words",
        ("deberta-v2",),
    ),
}
"""All of them take the best chunk's score, and a claim for supported when that is above a half."""

THRESHOLD = 0.5

_GENERATES = ("ForConditionalGeneration", "ForCausalLM", "LMHeadModel")


def described(folder: Path) -> dict[str, Any]:
    """The ``config.json`` of a checkpoint. Raises :class:`~models.errors.ModelUnusableError` when there is none."""
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnusableError(
            f"{folder} has no config.json that can be read: save the whole model there."
        ) from error
    return config


def resolve(family: Family, config: Mapping[str, Any], name: str) -> Family:
    """``family``, or what the checkpoint ``name`` with this ``config`` is where that is ``auto``.

    Raises :class:`~models.errors.ModelUnusableError` when the checkpoint is none of that family.
    """
    task = next(iter(config.get("architectures") or ()), "")
    if family == "bespoke_minicheck":
        if not task.endswith(_GENERATES[1:]):
            raise _unfit(family, name, task, "a causal language model")
        return family
    if family in LAYOUTS:
        _check(family, LAYOUTS[family], config, name, task)
        return family
    if task.endswith(_GENERATES):
        raise ModelUnusableError(
            f"{name} is a {task}, which classifies no pairs: set models.verifier.family to minicheck_flan_t5 or "
            "bespoke_minicheck if it is one of these."
        )
    named = _is_nli(config)
    if family == "nli" and not named:
        raise ModelUnusableError(
            f"{name} does not say which of its labels is entailment and which contradiction: name them in id2label in "
            "its config.json, or set models.verifier.family to cross_encoder."
        )
    return "nli" if family == "nli" or (family == "auto" and named) else "cross_encoder"


def labels(config: Mapping[str, Any]) -> dict[int, str]:
    """A classifier's labels by number, in lower case; two without names where it says nothing."""
    said = config.get("id2label") or dict.fromkeys(range(int(config.get("num_labels", 2))), "")
    return {int(number): str(label).lower() for number, label in said.items()}


def label_named(config: Mapping[str, Any], beginning: str) -> int | None:
    """The first label whose name begins so."""
    return next((number for number, label in labels(config).items() if label.startswith(beginning)), None)


def _is_nli(config: Mapping[str, Any]) -> bool:
    """Whether three labels or more are named, so that not entailed and contradicted are two things."""
    both = None not in (label_named(config, "entail"), label_named(config, "contradict"))
    return both and len(labels(config)) >= 3


def _check(family: Family, layout: Layout, config: Mapping[str, Any], name: str, task: str) -> None:
    if config.get("model_type") not in layout.model_types or not task.endswith(layout.task):
        raise _unfit(family, name, task, f"{' or '.join(layout.model_types)} {layout.task}")
    if layout.task == "ForSequenceClassification" and len(labels(config)) != 2:
        raise _unfit(family, name, f"{task} of {len(labels(config))} labels", "a classifier of two")


def _unfit(family: Family, name: str, found: str, wanted: str) -> ModelUnusableError:
    return ModelUnusableError(
        f"{name} is {found or 'of no architecture that it names'}, and the family {family} is {wanted}: set "
        "models.verifier.family to the family that it was trained as, or to auto."
    )
