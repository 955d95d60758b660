"""ALCE's citation rule (Gao et al., EMNLP 2023), shared by the legacy and the strict mode.

Recall: the cited passages together entail the sentence. Precision, of a sentence that is so entailed: a citation is
credited unless it is irrelevant, which it is when it does not entail the sentence alone and the others do without it.
With a grader other than TRUE-11B the figures are "ALCE protocol with grader X", not ALCE's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from serving.evaluation.judgements import Entails, Pair

AT_MOST = 3
"""Citations of a sentence that count, as in the original's runs on ASQA, ELI5 and QAMPARI."""


@dataclass(frozen=True, slots=True)
class Document:
    """A passage of an ALCE item."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """A question, a system's output and what it was given. ``answers[j]`` are the short answers of reading j."""

    question: str
    output: str
    docs: tuple[Document, ...]
    answers: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class Credit:
    """How one sentence did: entailed by its citations together or not, and how many of them were credited.

    ``overcited`` are those found irrelevant; ``counted`` is the sentence's part of the precision's denominator.
    """

    supported: bool
    credited: int
    counted: int
    overcited: int = 0


def judge(target: str, refs: Sequence[int], premises: Sequence[str], entails: Entails) -> Credit:
    """Judges a sentence against the premises it cites, by position. ``refs`` may repeat, and count from the end."""
    if not refs or not entails(_joined(refs, premises), target):
        return Credit(supported=False, credited=0, counted=len(refs))
    if len(refs) == 1:
        return Credit(supported=True, credited=1, counted=1)
    overcited = sum(
        not entails(premises[ref], target) and entails(_joined(_without(refs, ref), premises), target) for ref in refs
    )
    return Credit(supported=True, credited=len(refs) - overcited, counted=len(refs), overcited=overcited)


def pairs(target: str, refs: Sequence[int], premises: Sequence[str]) -> Iterator[Pair]:
    """Every judgement that :func:`judge` may ask for: all citations, each alone, all but each. With repeats."""
    if refs:
        yield _joined(refs, premises), target
    if len(refs) > 1:
        for ref in refs:
            yield premises[ref], target
            yield _joined(_without(refs, ref), premises), target


def _joined(refs: Sequence[int], premises: Sequence[str]) -> str:
    return "\n".join(premises[ref] for ref in refs)


def _without(refs: Sequence[int], ref: int) -> list[int]:
    # Of a citation that is repeated only the first goes, so that its twin still proves the sentence.
    rest = list(refs)
    rest.remove(ref)
    return rest
